"""The table of places that collide, for the HTML report on STM logs."""

from collections.abc import Iterator, Mapping, Sequence

from markupsafe import Markup

from gilscope.model.stm_log import Conflict, StmLog, StmReport
from gilscope.reports.html.markup import EMPTY, figure, joined, tag, text, time_lost
from gilscope.reports.stm_log.words import kind_name, meaning_of
from gilscope.stm_log.markers import describe, position_of
from gilscope.stm_log.time_bins import cells_of

__all__ = ["places_section"]

_MOST_ROWS = 100
_CELLS = 60
_CELL_WIDTH, _CELL_HEIGHT = 3, 18


def places_section(
    log: StmLog, conflicts: Sequence[Conflict], report: StmReport
) -> Iterator[Markup]:
    """Yield the table of *conflicts*, the costliest first."""
    most = _MOST_ROWS if report.most_entries is None else report.most_entries
    yield Markup('<section class="places"><h2>The costliest places</h2>')
    if not conflicts:
        yield Markup("<p>No transaction was in conflict with another one.</p></section>")
        return
    yield Markup(
        '<div class="scroll" tabindex="0" role="region" aria-label="the costliest places">'
    )
    yield Markup('<table class="conflicts"><thead><tr><th scope="col">kind and places</th>')
    for heading in ("lost in aborts", "paused", "times"):
        yield tag("th", heading, scope="col", class_="n")
    yield Markup('<th scope="col">over time</th></tr></thead><tbody>')
    for conflict in conflicts[:most]:
        yield _row(log, conflict, report.sources)
    yield Markup("</tbody></table></div>")
    rest = conflicts[most:]
    if rest:
        left_ns = sum(each.lost_ns + each.paused_ns for each in rest)
        yield tag("p", f"{len(rest)} more with {time_lost(left_ns)} are left out.", class_="quiet")
    yield from _legend(log, conflicts, report)
    yield Markup("</section>")


def _row(log: StmLog, conflict: Conflict, sources: Mapping[tuple[str, int], str]) -> Markup:
    if conflict.is_rest:
        places = tag("span", "all places that there was no room to tell apart", class_="quiet")
    else:
        places = joined(_place(marker, sources) for marker in conflict.markers or ("",))
    return tag(
        "tr",
        tag("td", tag("span", text(kind_name(conflict.kind)), class_="kind"), places),
        figure(conflict.lost_ns),
        figure(conflict.paused_ns),
        tag("td", conflict.count, class_="n"),
        tag("td", _spark(log, conflict)),
    )


def _place(marker: str, sources: Mapping[tuple[str, int], str]) -> Markup:
    position = position_of(marker)
    source = position and sources.get((position.file, position.line))
    quoted = tag("code", text(source), class_="source") if source else EMPTY
    return tag("span", text(describe(marker)), class_="site") + quoted


def _spark(log: StmLog, conflict: Conflict) -> Markup:
    counts = cells_of(conflict.over_time, log.first_ns, log.span_ns, _CELLS)
    largest = max(1, *counts)
    shape = Markup('<rect x="{}" y="{:.1f}" width="{}" height="{:.1f}"/>')
    shapes = (
        shape.format(
            cell * _CELL_WIDTH,
            _CELL_HEIGHT * (1 - count / largest),
            _CELL_WIDTH - 1,
            _CELL_HEIGHT * count / largest,
        )
        for cell, count in enumerate(counts)
        if count
    )
    return tag(
        "svg",
        *shapes,
        class_="spark",
        width=_CELLS * _CELL_WIDTH,
        height=_CELL_HEIGHT,
        role="img",
        aria_label=f"at most {largest} in a sixtieth of the time",
    )


def _legend(log: StmLog, conflicts: Sequence[Conflict], report: StmReport) -> Iterator[Markup]:
    layout = log.layout.partition(",")[0]
    yield Markup('<dl class="legend">')
    for kind in dict.fromkeys(conflict.kind for conflict in conflicts):
        if meaning := meaning_of(kind, layout):
            yield tag("div", tag("dt", text(kind_name(kind))), tag("dd", text(meaning)))
    yield Markup("</dl>")
    if report.sources:
        yield Markup(
            '<p class="quiet">Source lines were looked up now, by name: the file may have changed, '
            "or be another one of that name.</p>"
        )
