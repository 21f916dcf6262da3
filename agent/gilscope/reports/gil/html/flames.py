"""The frame in which the script draws its two flame graphs."""

from collections.abc import Iterator

from markupsafe import Markup

__all__ = ["flames_section"]

_GRAPHS = (
    ("holders", "Where the holders stood"),
    ("waiters", "Where the waiters stood meanwhile"),
)


def flames_section() -> Iterator[Markup]:
    """Yield the headings, the tools and the places of the graphs."""
    yield Markup(
        '<section id="flames" class="flames"><h2>Whose code kept it, and whom that delayed</h2>'
    )
    yield Markup(
        "<p>The same time twice, as flame graphs: above by the stacks of those who held the GIL, "
        "below by the stacks of those who waited. Each thread begins at the top; the width is time "
        "lost. Zoom into a frame, and the other graph shows only what belongs to it.</p>"
    )
    yield Markup(
        "<noscript><p>The graphs, and the stacks behind each pair, need the page's script, which "
        "may not run here. The text report has the stacks too.</p></noscript>"
    )
    yield Markup(
        '<p class="tools"><label>Find <input type="search" placeholder="function, file or line">'
    )
    yield Markup(
        '</label> <label class="switch-regex"><input type="checkbox" class="regex"> '
        "regular expression</label> "
    )
    yield Markup(
        '<button type="button" class="invert" aria-pressed="false">Innermost frames first</button> '
    )
    yield Markup(
        '<span class="quiet">A click or Enter zooms in, Escape out; arrow keys go from '
        "frame to frame.</span></p>"
    )
    for key, title in _GRAPHS:
        yield Markup('<figure class="flame {key}" id="{key}"><figcaption><h3>{title}</h3>').format(
            key=key, title=title
        )
        yield Markup('<output class="found" aria-live="polite"></output>')
        yield Markup('<button type="button" class="reset" hidden>Zoom out</button></figcaption>')
        yield Markup(
            '<p class="chip" aria-live="polite" hidden><span></span> '
            '<button type="button">Show all</button></p>'
        )
        yield Markup('<div class="canvas"></div><p class="detail"></p></figure>')
    yield Markup('<dl class="legend colours"><div><dt class="app">application</dt></div>')
    yield Markup('<div><dt class="lib">libraries</dt></div>')
    yield Markup('<div><dt class="boot">the beginning of every thread</dt></div>')
    yield Markup('<div><dt class="note">what is not known</dt></div></dl></section>')
