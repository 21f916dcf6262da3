"""The first part of the HTML report: what was traced, what was lost, and how sure that is."""

from collections.abc import Iterable, Iterator, Sequence

from markupsafe import Markup

import gilscope
from gilscope.model.gil import HoldTotals, ProcessTotals, Recording, Tally
from gilscope.model.histogram import total
from gilscope.naming.places import SiteNames
from gilscope.naming.python import python_of
from gilscope.reports.gil.html.pairs import known_ns, lost_ns
from gilscope.reports.gil.html.whose_code import lead
from gilscope.reports.gil.text.holds import cost_line, held_share
from gilscope.reports.gil.text.ticks import no_lock_lines, tick_advice
from gilscope.reports.gil.words import lost_words, unknown_base
from gilscope.reports.html.markup import clean, duration, large_figure, share, tag, text, time_lost
from gilscope.series.holders import HolderLoss
from gilscope.text.units import counted, percent
from gilscope.values import dataclass
from gilscope.verdict.base_rate import base_rate
from gilscope.verdict.estimates import about, are_shared_out

__all__ = ["heading", "summary_section"]

_METHODS = {"sites": "by its own call sites", "libc": "through its calls into libc"}


@dataclass(frozen=True, slots=True)
class _Figure:
    value: str
    name: str
    note: str


def heading(recording: Recording) -> Iterator[Markup]:
    """Yield which process was traced, for how long and how."""
    observation = recording.observation
    process = observation.process
    end = ", until the process ended" if observation.ended else ""
    yield Markup('<header><p class="tool">gilscope {}: GIL report</p>').format(
        text(gilscope.__version__)
    )
    yield tag("h1", text(process.name))
    yield Markup(
        "<p>pid {pid}, {python}; {duration} in {mode} mode{end}. "
        "The GIL was found {method} (build {build}).</p></header>"
    ).format(
        pid=process.pid,
        python=text(python_of(process)),
        duration=time_lost(recording.duration_ns),
        mode=text(recording.mode),
        end=end,
        method=_METHODS[process.method],
        build=text(process.build_id[:12]),
    )


def summary_section(
    recording: Recording, losses: Sequence[HolderLoss], names: SiteNames
) -> Iterator[Markup]:
    """Yield the costliest holder, the sums, and what is not in the sums."""
    totals = recording.observation.totals
    yield Markup('<section id="summary" class="summary"><h2>Summary</h2>')
    if not _wait_ns(totals):
        yield Markup('<p class="lead">No thread had to wait for the GIL.</p>')
    yield lead(losses, lost_ns(totals), names, about(is_estimate=are_shared_out(totals)))
    yield Markup('<dl class="figures">')
    for shown in _figures(recording):
        yield large_figure(shown.value, shown.name, shown.note)
    yield Markup('</dl><ul class="notes">')
    yield from (tag("li", words) for words in _notes(recording))
    yield Markup("</ul></section>")


def _figures(recording: Recording) -> Iterator[_Figure]:
    totals = recording.observation.totals
    wait_ns = _wait_ns(totals)
    waits = total(histogram for gil in totals.gils for histogram in gil.waits.values())
    number = sum(thread.waits for thread in totals.threads)
    mean = f" of {duration(waits.sum_ns // waits.count)} on average" if waits.count else ""
    yield _Figure(time_lost(wait_ns), "lost waiting", f"in {number} finished waits{mean}")
    waiting = wait_ns / max(1, recording.duration_ns)
    yield _Figure(f"{waiting:.2f}", "threads waiting", "at any moment, on average")
    yield from _base(recording)
    yield from _convoys(recording)
    yield from _held(recording)
    yield from _drop_latency(totals)
    yield from _failed_wakeups(recording)
    if wait_ns:
        yield _Figure(
            share(known_ns(totals), lost_ns(totals)),
            "both ends known",
            "of the time lost: where the waiter and where the holder stood",
        )


def _base(recording: Recording) -> Iterator[_Figure]:
    base = base_rate(recording.observation.totals, recording.duration_ns)
    if base is not None and base.waits:
        mark = about(is_estimate=base.is_estimate)
        yield _Figure(
            f"{mark}{percent(base.share)}",
            "of acquires waited",
            f"of {mark}{counted(base.acquires, 'acquire')} of the GIL, all threads together",
        )


def _convoys(recording: Recording) -> Iterator[_Figure]:
    totals = recording.observation.totals
    number = sum(thread.convoy_waits for thread in totals.threads)
    if not number or not recording.observation.process.knows_causes:
        return
    interval_ns = max((gil.interval_ns for gil in totals.gils), default=0)
    interval = duration(interval_ns)
    if recording.observation.process.asks_holder:
        interval = f"a switch interval ({interval})"
    yield _Figure(
        str(number),
        "convoy waits",
        f"after a blocking call, for {interval} or longer",
    )


def _held(recording: Recording) -> Iterator[_Figure]:
    totals = recording.observation.totals
    shares = [held_share(gil, totals, recording.duration_ns) for gil in totals.gils]
    known = [part for part in shares if part is not None]
    if not known:
        return
    holds = _holds(totals)
    value = percent(known[0]) if len(known) == 1 else f"{sum(known):.2f}"
    if not holds:
        value, note = f"≈ {value}", "sampled from outside"
    else:
        finished = total(hold.finished for hold in holds)
        mean = duration(finished.sum_ns // max(1, finished.count))
        note = f"in {counted(finished.count, 'finished hold')} of {mean} on average"
    if len(known) == 1:
        yield _Figure(value, "of the time held", note)
    else:
        yield _Figure(value, f"of {len(known)} GILs held", f"at any moment, {note}")


def _drop_latency(totals: ProcessTotals) -> Iterator[_Figure]:
    asked = sum(gil.drop_requests for gil in totals.gils)
    latency = total(gil.drop_latency for gil in totals.gils)
    half, most = latency.quantile_ns(0.5), latency.quantile_ns(0.99)
    if half is None or most is None:
        return
    yield _Figure(
        f"≈ {duration(half)}",
        "drop latency",
        f"p50 of {counted(asked, 'drop request')}; p99 ≈ {duration(most)}",
    )


def _failed_wakeups(recording: Recording) -> Iterator[_Figure]:
    if not recording.observation.process.wakes_in_vain:
        return
    threads = recording.observation.totals.threads
    failed = sum((thread.failed_wakeups for thread in threads), Tally())
    yield _Figure(
        str(failed.count),
        "failed wake-ups",
        f"woken, and the GIL was held again: {time_lost(failed.ns)} waited from there on",
    )


def _notes(recording: Recording) -> Iterator[str]:
    totals = recording.observation.totals
    waits_ns = [thread.waiting_ns for thread in totals.threads if thread.waiting_ns]
    # Where waits are seen in windows, some of these do not count.
    are_all_seen = totals.cost is None or not totals.cost.waits_unseen_ns
    yield from _in_flight("Waits", waits_ns, are_counted=are_all_seen)
    yield from _in_flight("Holds", [hold.holding_ns for hold in _holds(totals) if hold.holding_ns])
    advice = (*no_lock_lines(recording), *(tick_advice(recording) if _wait_ns(totals) else ()))
    if advice:
        yield " ".join(advice)
    if totals.edges and are_shared_out(totals):
        yield (
            "The stacks of some of the waits were read, chosen at random: what places have lost "
            "(≈) is scaled up from these."
        )
    wait_ns = _wait_ns(totals)
    if wait_ns and base_rate(totals, recording.duration_ns) is None:
        yield unknown_base(recording.observation.process)
    unknown_ns = lost_ns(totals) - known_ns(totals)
    if not totals.edges and wait_ns:
        yield "Where waiters and holders stood is not known for any of the waits."
    elif unknown_ns > 0:
        yield (
            f"For {time_lost(unknown_ns)} of waiting the place of the waiter or the holder is "
            "unknown; it counts in all sums, and as “unknown” among the places."
        )
    for reason, count in totals.lost_events.items():
        yield f"{clean(lost_words(reason, count))}."
    if not totals.lost_events:
        yield "No event was lost."
    for words in cost_line(recording):
        yield clean(words.replace(" us ", " µs "))


def _in_flight(what: str, lasted_ns: Iterable[int], *, are_counted: bool = True) -> Iterator[str]:
    lasted_ns = list(lasted_ns)
    if lasted_ns:
        how = ", counted up to there" if are_counted else ""
        yield (
            f"{what} in flight at the end{how}: {len(lasted_ns)}, the "
            f"longest for {duration(max(lasted_ns))}."
        )


def _wait_ns(totals: ProcessTotals) -> int:
    return totals.wait_ns


def _holds(totals: ProcessTotals) -> list[HoldTotals]:
    return [gil.holds for gil in totals.gils if gil.holds is not None]
