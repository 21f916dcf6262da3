"""The table of places that collide, for the HTML report on STM logs."""

from collections.abc import Iterator, Mapping, Sequence

from gilscope.reports.html_parts.markup import figure, text, time_lost
from gilscope.reports.stm_words import kind_name, meaning_of
from gilscope.stm.markers import describe, position_of
from gilscope.stm.model import Conflict, StmLog, StmReport
from gilscope.stm.time_line import cells_of

__all__ = ["places_section"]

_MOST_ROWS = 100
_CELLS = 60
_CELL_WIDTH, _CELL_HEIGHT = 3, 18


def places_section(log: StmLog, conflicts: Sequence[Conflict], report: StmReport) -> Iterator[str]:
    """Yield the table of *conflicts*, the dearest first."""
    most = _MOST_ROWS if report.most_entries is None else report.most_entries
    yield '<section class="places"><h2>The dearest places</h2>'
    if not conflicts:
        yield "<p>No transaction was in conflict with another one.</p></section>"
        return
    yield '<div class="scroll" tabindex="0" role="region" aria-label="the dearest places">'
    yield '<table class="conflicts"><thead><tr><th scope="col">kind and places</th>'
    for heading in ("lost in aborts", "paused", "times"):
        yield f'<th scope="col" class="n">{heading}</th>'
    yield '<th scope="col">over time</th></tr></thead><tbody>'
    for conflict in conflicts[:most]:
        yield _row(log, conflict, report.sources)
    yield "</tbody></table></div>"
    rest = conflicts[most:]
    if rest:
        left_ns = sum(each.lost_ns + each.paused_ns for each in rest)
        yield f'<p class="quiet">{len(rest)} more with {time_lost(left_ns)} are left out.</p>'
    yield from _legend(log, conflicts, report)
    yield "</section>"


def _row(log: StmLog, conflict: Conflict, sources: Mapping[tuple[str, int], str]) -> str:
    if conflict.is_rest:
        places = '<span class="quiet">all places that there was no room to tell apart</span>'
    else:
        places = "".join(_place(marker, sources) for marker in conflict.markers or ("",))
    return (
        f'<tr><td><span class="kind">{text(kind_name(conflict.kind))}</span>{places}</td>'
        f"{figure(conflict.lost_ns)}{figure(conflict.paused_ns)}"
        f'<td class="n">{conflict.count}</td><td>{_spark(log, conflict)}</td></tr>'
    )


def _place(marker: str, sources: Mapping[tuple[str, int], str]) -> str:
    position = position_of(marker)
    source = position and sources.get((position.file, position.line))
    quoted = f'<code class="source">{text(source)}</code>' if source else ""
    return f'<span class="site">{text(describe(marker))}</span>{quoted}'


def _spark(log: StmLog, conflict: Conflict) -> str:
    counts = cells_of(conflict.over_time, log.first_ns, log.span_ns, _CELLS)
    largest = max(1, *counts)
    shapes = "".join(
        f'<rect x="{cell * _CELL_WIDTH}" y="{_CELL_HEIGHT * (1 - count / largest):.1f}" '
        f'width="{_CELL_WIDTH - 1}" height="{_CELL_HEIGHT * count / largest:.1f}"/>'
        for cell, count in enumerate(counts)
        if count
    )
    return (
        f'<svg class="spark" width="{_CELLS * _CELL_WIDTH}" height="{_CELL_HEIGHT}" role="img" '
        f'aria-label="at most {largest} in a sixtieth of the time">{shapes}</svg>'
    )


def _legend(log: StmLog, conflicts: Sequence[Conflict], report: StmReport) -> Iterator[str]:
    layout = log.layout.partition(",")[0]
    yield '<dl class="legend">'
    for kind in dict.fromkeys(conflict.kind for conflict in conflicts):
        if meaning := meaning_of(kind, layout):
            yield f"<div><dt>{text(kind_name(kind))}</dt><dd>{text(meaning)}</dd></div>"
    yield "</dl>"
    if report.sources:
        yield (
            '<p class="quiet">Source lines were looked up now, by name: the file may have changed, '
            "or be another one of that name.</p>"
        )
