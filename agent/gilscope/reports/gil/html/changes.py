"""What changes of the program would bring, as a list of estimates with what they assume."""

from collections.abc import Iterator

from markupsafe import Markup

from gilscope.model.gil import Recording
from gilscope.reports.gil.changes import change_words
from gilscope.reports.html.markup import tag, text

__all__ = ["changes_section"]


def changes_section(recording: Recording) -> Iterator[Markup]:
    """Yield the list; nothing where no change is worth it, or can be told."""
    words = list(change_words(recording))
    if not words:
        return
    yield Markup('<section id="changes"><h2>What a change would bring (estimates)</h2><ul>')
    for change in words:
        shown = f"{change.what}: {change.gain},".replace(" us ", " µs ")
        yield tag("li", text(shown), " ", tag("span", change.assumption, ".", class_="quiet"))
    yield Markup("</ul></section>")
