"""The plots of the HTML report on STM logs: where time went, and when conflicts came."""

from collections.abc import Iterator, Sequence

from markupsafe import Markup

from gilscope.model.stm_log import Conflict, StmLog
from gilscope.reports.html.markup import EMPTY, duration, joined, share, tag, text, time_lost
from gilscope.reports.stm_log.words import kind_name
from gilscope.stm_log.time_bins import cells_of
from gilscope.values import dataclass

__all__ = ["TimePart", "conflicts_plot", "ends_plot", "time_parts", "times_plot"]

_COLUMNS = 120
_WIDTH, _HEIGHT = 960, 120
_COLUMN_WIDTH = _WIDTH // _COLUMNS


@dataclass(frozen=True, slots=True)
class TimePart:
    """A part of the time that threads spent in transactions."""

    name: str
    time_ns: int
    style: str
    """Class that colours it."""


@dataclass(frozen=True, slots=True)
class _Layer:
    name: str
    counts: Sequence[int]
    style: str


def time_parts(log: StmLog) -> list[TimePart]:
    """Return where the time inside of transactions went; S0 does not tell it apart."""
    totals = log.totals
    if log.semantics == "S0":
        return [TimePart("in transactions, with their pauses", totals.cpu_ns, "k0")]
    return [
        TimePart("committed", totals.committed_ns, "k0"),
        TimePart("aborted", totals.aborted_ns, "k1"),
        TimePart("paused", totals.paused_ns, "k2"),
        TimePart("detached: outside, with a transaction left open", totals.detached_ns, "k3"),
        TimePart("without an end in the log", totals.unfinished_ns, "k4"),
    ]


def times_plot(log: StmLog) -> Iterator[Markup]:
    """Yield the parts of the time as one bar, and as a table with the waits by their kinds."""
    parts = [part for part in time_parts(log) if part.time_ns]
    whole_ns = sum(part.time_ns for part in parts)
    yield Markup('<section class="times"><h2>Where the time went</h2>')
    yield Markup(
        "<p>Time that all threads together spent in transactions. It is elapsed time, also of "
        "threads that had to wait for a CPU.</p>"
    )
    if whole_ns:
        yield _bar(parts, whole_ns)
    yield Markup('<table class="parts"><tbody>')
    for part in parts:
        yield _part_row(part.name, part.time_ns, share(part.time_ns, whole_ns), part.style)
    for kind, (time_ns, number) in sorted(log.totals.waits.items(), key=lambda item: -item[1][0]):
        yield _part_row(
            f"waits: {kind_name(kind).removeprefix('wait ')}", time_ns, f"{number}x", ""
        )
    for name, time_ns in (
        ("minor collections, within all that", log.totals.minor_gc_ns),
        ("major collections, within all that", log.totals.major_gc_ns),
        ("waiting outside of transactions", log.totals.paused_outside_ns),
    ):
        if time_ns:
            yield _part_row(name, time_ns, share(time_ns, whole_ns), "")
    yield Markup("</tbody></table></section>")


def _bar(parts: Sequence[TimePart], whole_ns: int) -> Markup:
    x = 0.0
    shapes = []
    for part in parts:
        width = 100 * part.time_ns / whole_ns
        shapes.append(
            tag(
                "rect",
                tag("title", f"{part.name}: {time_lost(part.time_ns)}"),
                class_=part.style,
                x=f"{x:.3f}%",
                width=f"{width:.3f}%",
                height=28,
            )
        )
        x += width
    return Markup(
        '<svg class="whole" width="100%" height="28" role="img" '
        'aria-label="parts of the time in transactions">{}</svg>'
    ).format(joined(shapes))


def _part_row(name: str, time_ns: int, note: str, style: str) -> Markup:
    return tag(
        "tr",
        tag("th", _key(style) if style else EMPTY, text(name), scope="row"),
        tag("td", time_lost(time_ns), class_="n"),
        tag("td", note, class_="n"),
    )


def _key(style: str) -> Markup:
    return tag("i", class_=f"key {style}")


def conflicts_plot(log: StmLog, conflicts: Sequence[Conflict]) -> Iterator[Markup]:
    """Yield how many conflicts of each kind there were over time."""
    kinds = dict.fromkeys(conflict.kind for conflict in conflicts)
    layers = []
    for number, kind in enumerate(kinds):
        own = [_cells(log, conflict) for conflict in conflicts if conflict.kind == kind]
        counts = [sum(column) for column in zip(*own, strict=True)]
        layers.append(_Layer(kind_name(kind), counts, f"k{number % 5}"))
    yield Markup('<section class="over-time"><h2>Conflicts over time</h2>')
    yield from _columns(log, layers)
    yield Markup("</section>")


def ends_plot(log: StmLog) -> Iterator[Markup]:
    """Yield how many transactions were committed and aborted over time."""
    commits, aborts = (
        cells_of(line, log.first_ns, log.span_ns, _COLUMNS)
        for line in (log.commits_over_time, log.aborts_over_time)
    )
    if not any(commits) and not any(aborts):
        return
    yield Markup('<section class="ends"><h2>Commits and aborts over time</h2>')
    yield from _columns(log, [_Layer("aborted", aborts, "k1"), _Layer("committed", commits, "k0")])
    yield Markup("</section>")


def _cells(log: StmLog, conflict: Conflict) -> list[int]:
    return cells_of(conflict.over_time, log.first_ns, log.span_ns, _COLUMNS)


def _columns(log: StmLog, layers: Sequence[_Layer]) -> Iterator[Markup]:
    tops = [sum(column) for column in zip(*(layer.counts for layer in layers), strict=True)]
    largest = max(1, *tops)
    step = duration(log.span_ns // _COLUMNS)
    yield Markup('<figure class="columns"><figcaption>')
    for layer in layers:
        yield tag("span", _key(layer.style), text(layer.name))
    yield Markup("</figcaption>")
    yield Markup(
        '<svg viewBox="0 0 {} {}" preserveAspectRatio="none" role="img" '
        'aria-label="numbers over time, at most {} in {}">'
    ).format(_WIDTH, _HEIGHT, largest, step)
    for column in range(_COLUMNS):
        yield from _column(column, layers, largest)
    yield Markup("</svg>")
    yield Markup(
        '<p class="axis"><span>0</span><span>{}</span><span>{}</span></p>'
        '<p class="quiet">The highest column is {} in {}.</p></figure>'
    ).format(time_lost(log.span_ns // 2), time_lost(log.span_ns), largest, step)


def _column(column: int, layers: Sequence[_Layer], largest: int) -> Iterator[Markup]:
    bottom = float(_HEIGHT)
    for layer in layers:
        count = layer.counts[column]
        if not count:
            continue
        height = _HEIGHT * count / largest
        bottom -= height
        yield tag(
            "rect",
            tag("title", text(layer.name), f": {count}"),
            class_=layer.style,
            x=column * _COLUMN_WIDTH,
            y=f"{bottom:.2f}",
            width=_COLUMN_WIDTH - 1,
            height=f"{height:.2f}",
        )
