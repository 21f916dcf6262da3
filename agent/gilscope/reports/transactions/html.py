"""The transactions of live processes as HTML: a page of its own, or parts of one about GILs."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from markupsafe import Markup

import gilscope
from gilscope.model.histogram import Histogram
from gilscope.model.transactions import (
    Library,
    Method,
    StmObservation,
    StmRecording,
    StmThread,
    StmTotals,
)
from gilscope.naming.transaction_words import LIBRARY_WORDS, METHOD_WORDS, limits_of
from gilscope.reports.html import durations
from gilscope.reports.html.markup import (
    duration,
    figure,
    large_figure,
    numbered,
    tag,
    text,
    time_lost,
)
from gilscope.reports.html.pages import page
from gilscope.reports.transactions.words import lost_words
from gilscope.text.units import NS_PER_S, counted, percent

__all__ = ["parts", "render"]

_MOST_ROWS = 50
"""Of a table."""


def render(*recordings: StmRecording) -> Markup:
    """Return the page; it loads nothing, and runs no script."""
    process = recordings[0].observation.process
    return page(f"Transactions: {process.name}, pid {process.pid}", parts(recordings))


def parts(recordings: Sequence[StmRecording]) -> Iterator[Markup]:
    """Yield a part for each of *recordings*, the one that has lost most first."""
    ranked = sorted(recordings, key=lambda each: -_lost_ns(each.observation.totals))
    for number, recording in enumerate(ranked, 1):
        for line in (*_heading(recording), *_part(recording)):
            yield line if number == 1 else numbered(line, number)


def _heading(recording: StmRecording) -> Iterator[Markup]:
    observation = recording.observation
    process = observation.process
    end = ", until the process ended" if observation.ended and not observation.invalid else ""
    yield Markup('<header><p class="tool">gilscope {}: transactions</p>').format(
        text(gilscope.__version__)
    )
    yield tag("h1", text(process.name))
    yield Markup("<p>pid {}, {}; {}{}. Seen {}, in {} (build {}).</p></header>").format(
        process.pid,
        LIBRARY_WORDS[process.library],
        time_lost(recording.duration_ns),
        end,
        METHOD_WORDS[process.method],
        text(process.path),
        text(process.build_id[:12]),
    )


def _part(recording: StmRecording) -> Iterator[Markup]:
    observation = recording.observation
    process, totals = observation.process, observation.totals
    yield Markup('<article class="transactions">')
    if observation.invalid:
        yield tag("p", f"It was not seen to the end: {observation.invalid}.", class_="bad")
    yield Markup('<section id="stm-summary" class="summary"><h2>Summary</h2>')
    yield tag("p", _answer(totals), class_="lead")
    yield Markup('<dl class="figures">')
    yield from _figures(observation)
    yield Markup('</dl><ul class="notes">')
    yield from (tag("li", text(note)) for note in _notes(observation))
    yield Markup("</ul></section>")
    yield from _waits(totals)
    yield from _counts("stm-inevitable", "Made inevitable, by reason", totals.inevitable)
    yield from _counts("stm-restarts", "Restarts, by reason", totals.restarts or {})
    yield from _threads(totals.threads, process.method)
    yield from _collections(totals)
    took = "ran" if process.library is Library.RPYTHON else "took"
    yield from _durations(
        (f"Committed transactions {took}", totals.committed),
        ("Aborted tries had run", totals.aborted),
    )
    yield Markup("</article>")


def _answer(totals: StmTotals) -> str:
    waits = totals.waits or {}
    costly = max(waits.items(), key=lambda item: item[1].ns, default=None)
    most = ""
    if costly is not None and costly[1].ns:
        kind, tally = costly
        most = f" Most pauses: {time_lost(tally.ns)} in {kind} ({tally.count}x)."
    if totals.aborts is None:
        return f"Aborts of this program are not seen.{most}"
    share_of = percent(totals.aborts / max(1, totals.aborts + totals.commits))
    tries = f"{counted(totals.aborts, 'try was', 'tries were')} aborted, {share_of} of all"
    if totals.aborted is None:
        return f"{tries}; what that has cost is not seen.{most}"
    return f"{time_lost(totals.aborted.sum_ns)} lost in aborts: {tries}.{most}"


def _figures(observation: StmObservation) -> Iterator[Markup]:
    totals, observed_ns = observation.totals, max(1, observation.observed_ns)
    if totals.aborted is not None:
        mean = totals.aborted.sum_ns // max(1, totals.aborted.count)
        yield large_figure(
            time_lost(totals.aborted.sum_ns), "lost in aborts", f"{duration(mean)} on average"
        )
    if totals.waits is not None:
        number = sum(tally.count for tally in totals.waits.values())
        paused_ns = sum(tally.ns for tally in totals.waits.values())
        yield large_figure(time_lost(paused_ns), "paused", f"in {counted(number, 'wait')}")
    if totals.aborts is not None:
        ends = max(1, totals.aborts + totals.commits)
        yield large_figure(
            percent(totals.aborts / ends), "aborted", f"of {counted(ends, 'try', 'tries')}"
        )
    rate = totals.commits * NS_PER_S / observed_ns
    yield large_figure(str(totals.commits), "commits", f"{rate:.0f} a second")
    passed_ns = max(1, totals.at_ns - observation.since_ns)
    covered = percent(min(1.0, observation.observed_ns / passed_ns))
    yield large_figure(covered, "of the time observed", time_lost(observation.observed_ns))
    if observation.cost is not None:
        yield large_figure(
            percent(observation.cost.recent_ratio), "overhead", "of its own CPU time, estimated"
        )


def _notes(observation: StmObservation) -> Iterator[str]:
    if not observation.is_whole:
        yield (
            "Seen in windows at random, as the overhead budget allows: all figures are of these, "
            "and none is multiplied up. --mode full sees all of the time."
        )
    yield from limits_of(observation.process)
    lost = observation.totals.lost_events
    yield from (f"{lost_words(reason, count)}." for reason, count in lost.items())
    if not lost:
        yield "No event was lost."


def _waits(totals: StmTotals) -> Iterator[Markup]:
    waits = [(kind, each) for kind, each in (totals.waits or {}).items() if each.count]
    rows = (
        (text(kind), figure(tally.ns), _number(tally.count))
        for kind, tally in sorted(waits, key=lambda item: -item[1].ns)
    )
    yield from _table("stm-waits", "Paused, by kind", ("waited for", "time", "waits"), rows)


def _counts(name: str, heading: str, counts: Mapping[str, int]) -> Iterator[Markup]:
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    rows = ((text(reason), _number(count)) for reason, count in ranked)
    yield from _table(name, heading, ("reason", "times"), rows)


def _threads(threads: Sequence[StmThread], method: Method) -> Iterator[Markup]:
    heads = ["thread", "tid", "commits"]
    heads += ["committed"] if method.has_commit_times else []
    heads += ["aborts"] if method.has_aborts else []
    heads += ["lost in aborts"] if method.has_abort_costs else []

    def cells(thread: StmThread) -> Iterator[Markup]:
        yield text(thread.name)
        yield _number(thread.tid)
        yield _number(thread.committed.count)
        if method.has_commit_times:
            yield figure(thread.committed.ns)
        if method.has_aborts:
            yield _number(thread.aborted.count)
        if method.has_abort_costs:
            yield figure(thread.aborted.ns)

    ranked = sorted(threads, key=lambda each: (-each.aborted.ns, -each.committed.count, each.tid))
    yield from _table("stm-threads", "By thread", heads, (tuple(cells(each)) for each in ranked))


def _collections(totals: StmTotals) -> Iterator[Markup]:
    rows = (
        (text(generation), figure(tally.ns), _number(tally.count))
        for generation, tally in (totals.collections or {}).items()
        if tally.count
    )
    heads = ("generation", "time", "collections")
    yield from _table("stm-collections", "Collections of garbage", heads, rows)


def _durations(*named: tuple[str, Histogram | None]) -> Iterator[Markup]:
    charts = [(heading, each) for heading, each in named if each is not None and each.count]
    if not charts:
        return
    yield Markup('<section id="stm-durations"><h2>How long it took</h2><div class="charts">')
    for heading, histogram in charts:
        yield from durations.duration_chart(heading, histogram)
    yield Markup("</div></section>")


def _table(
    name: str, heading: str, heads: Sequence[str], rows: Iterable[Sequence[Markup]]
) -> Iterator[Markup]:
    every = list(rows)
    if not every:
        return
    yield Markup('<section id="{}"><h2>{}</h2><table><thead><tr>').format(name, heading)
    first, *others = heads
    yield tag("th", first, scope="col")
    yield from (tag("th", each, scope="col", class_="n") for each in others)
    yield Markup("</tr></thead><tbody>")
    for label, *cells in every[:_MOST_ROWS]:
        yield tag("tr", tag("th", label, scope="row"), *cells)
    yield Markup("</tbody></table>")
    rest = len(every) - _MOST_ROWS
    if rest > 0:
        yield tag("p", f"and {rest} more, which the JSON report has", class_="quiet")
    yield Markup("</section>")


def _number(count: int) -> Markup:
    return tag("td", count, class_="n", data_v=count)


def _lost_ns(totals: StmTotals) -> int:
    aborted = 0 if totals.aborted is None else totals.aborted.sum_ns
    return aborted + sum(tally.ns for tally in (totals.waits or {}).values())
