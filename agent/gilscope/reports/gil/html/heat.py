"""The source of the costliest functions, with what each line has cost in the margin."""

from collections.abc import Iterator, Sequence

from markupsafe import Markup

from gilscope.model.gil import Recording, Tally
from gilscope.naming.places import SiteNames
from gilscope.reports.gil.heat import Heat, hottest
from gilscope.reports.html.markup import clean, duration, shade, share, tag, text, time_lost

__all__ = ["heat_section"]


def heat_section(recording: Recording, whole_ns: int, names: SiteNames) -> Iterator[Markup]:
    """Yield the functions whose source is there, with shares of *whole_ns*; nothing without any."""
    heats = [
        heat
        for heat in hottest(recording.observation.totals.edges, recording.application)
        if any((heat.frame.file, line) in recording.listings for line in heat.by_line)
    ]
    if not heats:
        return
    yield Markup('<section id="heat"><h2>Line by line</h2>')
    yield Markup(
        "<p>In the margin: the time that threads waited while the holder was in that line, or in "
        "what it called.</p>"
    )
    hottest_ns = max(lost.ns for heat in heats for lost in heat.by_line.values())
    for heat in heats:
        lines = list(_lines(heat, recording))
        yield from _caption(heat, whole_ns, names)
        yield from _rows(heat, lines, recording, hottest_ns)
        yield Markup("</tbody></table></div></figure>")
    yield Markup(
        '<p class="quiet">“Up to”: as if nothing held the GIL in its place. Waits of the same '
        "function behind itself, in other threads, are not in it.</p></section>"
    )


def _caption(heat: Heat, whole_ns: int, names: SiteNames) -> Iterator[Markup]:
    yield Markup('<figure class="listing"><figcaption><h3 class="site holder">{}</h3>').format(
        text(names.site(heat.frame))
    )
    mean_ns = heat.lost.ns // max(1, heat.lost.count)
    yield Markup(
        '<p class="quiet">{} lost behind it, {} at a time on average. If it did not keep the GIL, '
        "others would wait up to {} less: {} of the time lost.</p></figcaption>"
    ).format(
        time_lost(heat.lost.ns),
        duration(mean_ns),
        time_lost(heat.others.ns),
        share(heat.others.ns, whole_ns),
    )
    yield Markup(
        '<div class="scroll" tabindex="0" role="region" aria-label="source"><table><tbody>'
    )


def _lines(heat: Heat, recording: Recording) -> Iterator[int]:
    """Yield the numbers of the lines that are there and of this function."""
    texts = {line: recording.listings.get((heat.frame.file, line)) for line in heat.shown_lines}
    hottest = max(heat.by_line)
    first = texts.get(heat.frame.first_line)
    for line, words in texts.items():
        is_next = (
            line > hottest and first is not None and _indentation(words) <= _indentation(first)
        )
        if is_next and not heat.is_module:
            return
        if words is not None:
            yield line


def _indentation(words: str | None) -> int:
    return len(words) - len(words.lstrip()) if words else 0


def _rows(
    heat: Heat, lines: Sequence[int], recording: Recording, hottest_ns: int
) -> Iterator[Markup]:
    last = lines[0]
    for line in lines:
        if line > last + 1:
            yield Markup('<tr><td></td><td class="n quiet">⋮</td><td></td></tr>')
        last = line
        lost = heat.by_line.get(line, Tally())
        yield tag(
            "tr",
            tag("td", time_lost(lost.ns) if lost.ns else "", class_=_class(lost, hottest_ns)),
            tag("td", line, class_="n quiet"),
            tag("td", tag("code", clean(recording.listings[heat.frame.file, line]))),
        )


def _class(lost: Tally, hottest_ns: int) -> str:
    return f"n s{shade(lost.ns, hottest_ns)}" if lost.ns else "n"
