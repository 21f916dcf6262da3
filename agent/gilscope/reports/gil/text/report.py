"""The report of a recording that a person reads."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from gilscope.model.gil import (
    ENDED_INTERPRETER,
    GilObservation,
    GilTotals,
    ProcessTotals,
    Recording,
    Tally,
)
from gilscope.model.histogram import Histogram, total
from gilscope.model.kinds import Kind
from gilscope.reports.gil.text.blocking import edge_lines
from gilscope.reports.gil.text.held_by import held_by_lines, no_contention_lines
from gilscope.reports.gil.text.hog import hog_lines
from gilscope.reports.gil.text.holds import (
    cost_line,
    held_share,
    hold_histograms,
    hold_summary,
    holder_lines,
)
from gilscope.reports.gil.text.slow_drops import slow_drop_lines
from gilscope.reports.gil.text.whose_code import whose_code_lines
from gilscope.reports.gil.words import KIND_WORDS, lost_words
from gilscope.text.ansi import Paint
from gilscope.text.histogram import bars
from gilscope.text.printable import printable
from gilscope.text.units import counted, percent, seconds, short_duration

__all__ = ["render"]

_CONVOY_SHARE = 0.5
_CONVOY_WAITS = 10
"""From here on it is a pattern and not an accident."""


@dataclass(frozen=True, slots=True)
class _RoleLoss:
    role: str
    kind: Kind
    tally: Tally
    threads: int


def render(recording: Recording, *, colour: bool = False) -> str:
    """Return the report; *colour* adds terminal colours."""
    lines = list(_lines(recording, Paint(on=colour)))
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _lines(recording: Recording, paint: Paint) -> Iterator[str]:
    observation = recording.observation
    yield from _heading(recording, paint)
    if observation.invalid:
        yield ""
        yield paint.red(f"Nothing is reported, because {observation.invalid}.")
        return
    totals = observation.totals
    losses = _losses(totals)
    yield ""
    yield from hold_summary(recording, paint)
    if losses:
        yield from _summary(recording, paint)
        hog = tuple(hog_lines(recording, paint))
        yield from _after_blank(hog)
        if not hog:
            yield from _convoys(losses, totals, paint)
        yield from _after_blank(whose_code_lines(recording, paint))
        yield from _after_blank(edge_lines(recording, paint))
        yield from _after_blank(slow_drop_lines(recording, paint))
        yield ""
        yield from _loss_lines(losses, recording.duration_ns, paint)
        yield from _after_blank(held_by_lines(recording, paint))
    else:
        yield "No thread had to wait for the GIL."
        yield from no_contention_lines(recording)
        yield from _after_blank(held_by_lines(recording, paint))
    yield from _after_blank(holder_lines(recording, paint))
    if losses:
        yield from _histograms(totals.gils, paint)
    yield from hold_histograms(totals, paint)
    yield from _interpreters(recording, paint)
    yield from _after_blank(cost_line(recording))
    yield from _lost_events(observation, paint)


def _after_blank(lines: Iterable[str]) -> Iterator[str]:
    lines = tuple(lines)
    if lines:
        yield ""
        yield from lines


def _heading(recording: Recording, paint: Paint) -> Iterator[str]:
    process = recording.observation.process
    yield paint.bold(f"{printable(process.name)}, pid {process.pid}, CPython {process.python}")
    by = {"sites": "by its own call sites", "libc": "through its calls into libc"}[process.method]
    end = ", until the process ended" if recording.observation.ended else ""
    yield (
        f"{seconds(recording.duration_ns)} in {recording.mode} mode{end}. "
        f"The GIL was found {by} (build {process.build_id[:12]})."
    )


def _summary(recording: Recording, paint: Paint) -> Iterator[str]:
    totals = recording.observation.totals
    wait_ns = totals.wait_ns
    waits = sum(thread.waits for thread in totals.threads)
    in_flight = sum(1 for thread in totals.threads if thread.waiting_ns)
    share = wait_ns / max(1, recording.duration_ns)
    yield paint.bold(f"{seconds(wait_ns)} lost waiting for the GIL") + (
        f" in {counted(waits, 'wait')}: at any moment {share:.2f} threads were waiting on average."
    )
    if in_flight:
        longest = short_duration(max(thread.waiting_ns for thread in totals.threads))
        yield (
            f"Waits in flight at the end, counted up to there: {in_flight}, "
            f"the longest for {longest}."
        )
    asked = sum(gil.drop_requests for gil in totals.gils)
    latency = total(gil.drop_latency for gil in totals.gils)
    if asked:
        answered = (
            f"drop latency p50 {_at_most(latency, 0.5)}, p99 {_at_most(latency, 0.99)}"
            if latency.count
            else "none answered"
        )
        yield f"Drop requests: {asked}, {answered}."


def _convoys(losses: list[_RoleLoss], totals: ProcessTotals, paint: Paint) -> Iterator[str]:
    interval_ns = max((gil.interval_ns for gil in totals.gils), default=0)
    for loss in losses:
        if loss.kind is not Kind.CONVOY or loss.tally.count < _CONVOY_WAITS:
            continue
        returning = loss.tally.count + sum(
            other.tally.count
            for other in losses
            if other.role == loss.role and other.kind is Kind.BLOCKING_CALL
        )
        share = loss.tally.count / returning
        if share < _CONVOY_SHARE:
            continue
        busy = sorted(
            {other.role for other in losses if other.kind is Kind.PREEMPTION} - {loss.role}
        )
        yield ""
        yield paint.red(f"Convoy: {loss.role}")
        yield (
            f"  had to wait {counted(returning, 'time')} after a blocking call and, "
            f"in {percent(share)} of them,"
        )
        yield (
            f"  queued for at least a whole switch interval ({short_duration(interval_ns)}), "
            f"{short_duration(loss.tally.ns // loss.tally.count)} on average."
        )
        if busy:
            yield f"  The threads that compute and are preempted meanwhile: {', '.join(busy)}."
        yield "  What helps: compute in another process, or in code that releases the GIL;"
        yield "  a shorter sys.setswitchinterval() buys shorter waits with more switches."


def _loss_lines(losses: list[_RoleLoss], duration_ns: int, paint: Paint) -> Iterator[str]:
    yield paint.bold("Time lost, by thread role and kind")
    for loss in losses:
        threads = f" ({loss.threads} threads)" if loss.threads > 1 else ""
        share = loss.tally.ns / max(1, duration_ns * loss.threads)
        yield (
            f"{seconds(loss.tally.ns):>10} lost waiting ({loss.tally.count}x {loss.kind.value}), "
            f"{percent(share)} of its time"
        )
        yield f"           {paint.bold(loss.role)}{threads}"
        yield paint.dim(f"           {KIND_WORDS[loss.kind]}")


def _histograms(gils: Iterable[GilTotals], paint: Paint) -> Iterator[str]:
    gils = tuple(gils)
    waits = total(histogram for gil in gils for histogram in gil.waits.values())
    if waits.count:
        yield ""
        yield paint.bold("How long the waits lasted")
        yield from bars(waits)
    latency = total(gil.drop_latency for gil in gils)
    if latency.count:
        yield ""
        yield paint.bold("How long holders took to drop the GIL when asked")
        yield from bars(latency)


def _interpreters(recording: Recording, paint: Paint) -> Iterator[str]:
    totals = recording.observation.totals
    if len(totals.gils) <= 1:
        return
    yield ""
    yield paint.bold("Interpreters with a GIL of their own")
    for gil in totals.gils:
        waits = total(gil.waits.values())
        number = gil.gil.interpreter_id
        name = "one that has ended" if number == ENDED_INTERPRETER else f"interpreter {number}"
        share = held_share(gil, totals, recording.duration_ns)
        about = "" if gil.holds is not None else "about "
        held = "" if share is None else f", held {about}{percent(share)} of the time"
        yield f"  {name}: {seconds(waits.sum_ns)} in {counted(waits.count, 'wait')}{held}"


def _lost_events(observation: GilObservation, paint: Paint) -> Iterator[str]:
    lost = observation.totals.lost_events
    yield ""
    if not lost:
        yield "No event was lost."
        return
    yield paint.bold("Not counted in full")
    for reason, count in lost.items():
        number, _, words = lost_words(reason, count).partition(" ")
        yield f"{number:>10} {words}"


def _losses(totals: ProcessTotals) -> list[_RoleLoss]:
    tallies: dict[tuple[str, Kind], list[Tally]] = {}
    for thread in totals.threads:
        for kind, tally in thread.lost.items():
            if tally.ns or tally.count:
                role = printable(thread.role or "starting")
                tallies.setdefault((role, kind), []).append(tally)
    losses = [
        _RoleLoss(role, kind, sum(parts, start=Tally()), len(parts))
        for (role, kind), parts in tallies.items()
    ]
    return sorted(losses, key=lambda loss: (-loss.tally.ns, loss.role, loss.kind.value))


def _at_most(histogram: Histogram, q: float) -> str:
    bound_ns = histogram.quantile_ns(q)
    return "unknown" if bound_ns is None else f"≤ {short_duration(bound_ns)}"
