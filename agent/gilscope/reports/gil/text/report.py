"""The report of a recording that a person reads."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from gilscope.model.gil import (
    ENDED_INTERPRETER,
    GilObservation,
    GilTotals,
    Recording,
)
from gilscope.model.histogram import Histogram, total
from gilscope.model.kinds import Kind
from gilscope.naming.python import python_of
from gilscope.reports.gil.releases import (
    BRIEF_ADVICE,
    BRIEF_HEADING,
    KEEPING_HEADING,
    brief_words,
    keeping_words,
)
from gilscope.reports.gil.text.blocking import edge_lines
from gilscope.reports.gil.text.convoy import convoy_lines
from gilscope.reports.gil.text.held_by import held_by_lines
from gilscope.reports.gil.text.held_traces import held_trace_lines
from gilscope.reports.gil.text.hog import hog_lines
from gilscope.reports.gil.text.holds import (
    cost_line,
    held_share,
    hold_histograms,
    hold_summary,
    holder_lines,
)
from gilscope.reports.gil.text.routes import route_lines
from gilscope.reports.gil.text.slow_drops import slow_drop_lines
from gilscope.reports.gil.text.ticks import failed_wakeup_lines, no_lock_lines, tick_advice
from gilscope.reports.gil.text.traces import trace_lines
from gilscope.reports.gil.text.whose_code import whose_code_lines
from gilscope.reports.gil.words import base_words, kind_words, lost_words, unknown_base
from gilscope.text.ansi import Paint
from gilscope.text.histogram import bars
from gilscope.text.printable import printable
from gilscope.text.units import counted, percent, seconds, short_duration
from gilscope.verdict.base_rate import base_rate
from gilscope.verdict.change_words import change_words
from gilscope.verdict.degree import Degree
from gilscope.verdict.no_contention import no_contention
from gilscope.verdict.role_losses import RoleLoss, role_losses
from gilscope.verdict.verdict import verdict_of

__all__ = ["render"]


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
    losses = role_losses([recording])
    yield ""
    yield from hold_summary(recording, paint)
    if losses:
        yield from _summary(recording, paint)
        if verdict_of(recording).degree is Degree.NONE:
            yield from no_contention(recording.observation.totals.holder_samples)
        hog = tuple(hog_lines(recording, paint))
        yield from _after_blank(hog)
        if not hog:
            yield from _after_blank(convoy_lines(recording, paint))
        if verdict_of(recording).degree is not Degree.NONE:
            yield from _after_blank(tick_advice(recording))
        yield from _after_blank(_change_lines(recording, paint))
        yield from _after_blank(_release_lines(recording, paint))
        yield from _after_blank(whose_code_lines(recording, paint))
        yield from _after_blank(edge_lines(recording, paint))
        yield from _after_blank(route_lines(recording, paint))
        yield from _after_blank(trace_lines(recording, paint))
        yield from _after_blank(held_trace_lines(recording, paint))
        yield from _after_blank(slow_drop_lines(recording, paint))
        yield ""
        yield from _loss_lines(losses, kind_words(observation), paint)
        yield from _after_blank(held_by_lines(recording, paint))
    else:
        yield "No thread had to wait for the GIL."
        yield from no_lock_lines(recording)
        yield from no_contention(recording.observation.totals.holder_samples)
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
    yield paint.bold(f"{printable(process.name)}, pid {process.pid}, {python_of(process)}")
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
    base = base_rate(totals, recording.duration_ns)
    if base is None:
        yield unknown_base(recording.observation.process)
    elif waits:
        yield f"That is {base_words(base)}: all others found it free."
    if in_flight:
        longest = short_duration(max(thread.waiting_ns for thread in totals.threads))
        # Where waits are seen in windows, some of these do not count.
        cost = totals.cost
        how = "" if cost is not None and cost.waits_unseen_ns else ", counted up to there"
        yield f"Waits in flight at the end{how}: {in_flight}, the longest for {longest}."
    asked = sum(gil.drop_requests for gil in totals.gils)
    latency = total(gil.drop_latency for gil in totals.gils)
    if asked:
        answered = (
            f"drop latency p50 {_quantile(latency, 0.5)}, p99 {_quantile(latency, 0.99)}"
            if latency.count
            else "none answered"
        )
        yield f"Drop requests: {asked}, {answered}."
    yield from failed_wakeup_lines(recording)


def _change_lines(recording: Recording, paint: Paint) -> Iterator[str]:
    words = list(change_words(recording))
    if words:
        yield paint.bold("What a change would bring (estimates)")
    for change in words:
        yield f"  {change.what}:"
        yield f"    {change.gain},"
        yield paint.dim(f"    {change.assumption}.")


def _release_lines(recording: Recording, paint: Paint) -> Iterator[str]:
    brief, keeping = list(brief_words(recording)), list(keeping_words(recording))
    if brief:
        yield paint.bold(BRIEF_HEADING)
        yield from (f"  {words}." for words in brief)
        yield f"  {BRIEF_ADVICE}"
    if brief and keeping:
        yield ""
    if keeping:
        yield paint.bold(KEEPING_HEADING)
        yield from (f"  {words}." for words in keeping)


def _loss_lines(
    losses: Sequence[RoleLoss], words: Mapping[Kind, str], paint: Paint
) -> Iterator[str]:
    yield paint.bold("Time lost, by thread role and kind")
    rows = [(loss, kind, tally) for loss in losses for kind, tally in loss.lost.items()]
    for loss, kind, tally in sorted(rows, key=lambda row: (-row[2].ns, row[0].role, row[1].value)):
        threads = f" ({loss.threads} threads)" if loss.threads > 1 else ""
        share = tally.ns / max(1, loss.time_ns)
        yield (
            f"{seconds(tally.ns):>10} lost waiting ({tally.count}x {kind.value}), "
            f"{percent(share)} of its time"
        )
        yield f"           {paint.bold(printable(loss.role))}{threads}"
        yield paint.dim(f"           {words[kind]}")


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
        about = "" if gil.holds is not None else "≈ "
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


def _quantile(histogram: Histogram, q: float) -> str:
    ns = histogram.quantile_ns(q)
    return "unknown" if ns is None else f"≈ {short_duration(ns)}"
