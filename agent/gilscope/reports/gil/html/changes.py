"""What changes of the program would bring, as lists: estimates, and calls to be changed."""

from collections.abc import Iterable, Iterator

from markupsafe import Markup

from gilscope.model.gil import Recording
from gilscope.reports.gil.releases import (
    BRIEF_ADVICE,
    BRIEF_HEADING,
    KEEPING_HEADING,
    brief_words,
    keeping_words,
)
from gilscope.reports.html.markup import tag, text
from gilscope.verdict.change_words import change_words

__all__ = ["changes_section"]


def changes_section(recording: Recording) -> Iterator[Markup]:
    """Yield the lists; nothing where no change is worth it, or can be told."""
    yield from _estimates(recording)
    yield from _list("brief-releases", BRIEF_HEADING, brief_words(recording), BRIEF_ADVICE)
    yield from _list("keeping-calls", KEEPING_HEADING, keeping_words(recording))


def _estimates(recording: Recording) -> Iterator[Markup]:
    words = list(change_words(recording))
    if not words:
        return
    yield Markup('<section id="changes"><h2>What a change would bring (estimates)</h2><ul>')
    for change in words:
        shown = f"{change.what}: {change.gain},".replace(" us ", " µs ")
        yield tag("li", text(shown), " ", tag("span", change.assumption, ".", class_="quiet"))
    yield Markup("</ul></section>")


def _list(name: str, heading: str, words: Iterable[str], help_words: str = "") -> Iterator[Markup]:
    lines = list(words)
    if not lines:
        return
    yield tag("section", tag("h2", heading), _items(lines), tag("p", help_words), id=name)


def _items(lines: Iterable[str]) -> Markup:
    shown = (text(f"{line}.".replace(" us ", " µs ").replace(" us,", " µs,")) for line in lines)
    return tag("ul", *(tag("li", line) for line in shown))
