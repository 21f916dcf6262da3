"""What the text report says about holds: who had the GIL for how long, and what it cost to know."""

from collections.abc import Iterator, Sequence

from gilscope.model.gil import GilTotals, HoldTotals, ProcessTotals, Recording, Tally, TracingCost
from gilscope.model.histogram import total
from gilscope.text.ansi import Paint
from gilscope.text.histogram import bars
from gilscope.text.printable import printable
from gilscope.text.units import counted, percent, seconds, short_duration
from gilscope.values import dataclass

__all__ = [
    "cost_line",
    "cost_words",
    "held_share",
    "hold_histograms",
    "hold_summary",
    "holder_lines",
]

_RECENT_NS = 60_000_000_000
"""What is called recent in `TracingCost`."""


@dataclass(frozen=True, slots=True)
class _RoleHolds:
    role: str
    tally: Tally
    threads: int


def hold_summary(recording: Recording, paint: Paint) -> Iterator[str]:
    """Yield how much of the time the GIL was held; nothing where that is not known."""
    totals = recording.observation.totals
    shares = [held_share(gil, totals, recording.duration_ns) for gil in totals.gils]
    known = [share for share in shares if share is not None]
    if not known:
        return
    holds = _holds(totals)
    about = "" if holds else "≈ "
    if len(known) == 1:
        words = paint.bold(f"The GIL was held {about}{percent(known[0])} of the time")
    else:
        words = paint.bold(f"At any moment {about}{sum(known):.2f} of {len(known)} GILs were held")
    if not holds:
        # The deviation depends on the samples, which are as frequent as the machine allows.
        yield f"{words} (sampled)."
        return
    finished = total(hold.finished for hold in holds)
    if finished.count:
        mean = short_duration(finished.sum_ns // finished.count)
        words += f", in {counted(finished.count, 'hold')} of {mean} on average"
    yield f"{words}."
    holding = [hold.holding_ns for hold in holds if hold.holding_ns]
    if holding:
        yield (
            f"Holds in flight at the end, counted up to there: {len(holding)}, "
            f"the longest for {short_duration(max(holding))}."
        )


def holder_lines(recording: Recording, paint: Paint) -> Iterator[str]:
    """Yield who held the GIL, most time first; nothing where holds are not seen."""
    totals = recording.observation.totals
    holders = _holders(totals)
    if not holders:
        return
    yield paint.bold("Who held the GIL, by thread role")
    for holder in holders:
        threads = f" ({holder.threads} threads)" if holder.threads > 1 else ""
        share = holder.tally.ns / _observed_ns(totals, recording.duration_ns)
        line = f"{seconds(holder.tally.ns):>10} held in {counted(holder.tally.count, 'hold')}"
        if holder.tally.count:
            line += f" of {short_duration(holder.tally.ns // holder.tally.count)} on average"
        yield f"{line}, {percent(share)} of the time"
        yield f"           {paint.bold(holder.role)}{threads}"


def hold_histograms(totals: ProcessTotals, paint: Paint) -> Iterator[str]:
    """Yield how long holds and switches took, as far as there were any."""
    holds = _holds(totals)
    for heading, histogram in (
        ("How long the holds lasted", total(hold.finished for hold in holds)),
        ("How long the GIL took to change hands", total(hold.switch_latency for hold in holds)),
    ):
        if histogram.count:
            yield ""
            yield paint.bold(heading)
            yield from bars(histogram)


def cost_line(recording: Recording) -> Iterator[str]:
    """Yield what tracing has cost the process, by its own estimate."""
    yield from cost_words(recording.observation.totals.cost, recording.duration_ns)


def cost_words(cost: TracingCost | None, duration_ns: int) -> Iterator[str]:
    """Yield *cost* as a sentence, in a report on *duration_ns*; nothing where it is not known."""
    if cost is None:
        return
    lately = " in the last minute" if duration_ns > _RECENT_NS else ""
    yield (
        f"Tracing cost the process about {short_duration(cost.overhead_ns)} of CPU time "
        f"({counted(cost.traps, 'trap')}), "
        f"{percent(cost.recent_ratio)} of what it used itself{lately}."
    )
    if cost.waits_unseen_ns:
        seen = max(0.0, 1 - cost.waits_unseen_ns / max(1, duration_ns))
        error = "" if cost.wait_error is None else f", to {percent(cost.wait_error)}"
        yield (
            f"Waits were seen in {percent(seen)} of the time, "
            f"as the overhead budget allows; what threads have waited is estimated{error}."
        )


def held_share(gil: GilTotals, totals: ProcessTotals, duration_ns: int) -> float | None:
    """Return how much of the time *gil* was held; None if it is not known."""
    if gil.holds is not None:
        return min(1.0, gil.holds.held_ns / _observed_ns(totals, duration_ns))
    if gil.held_ns is None:
        return None
    return min(1.0, gil.held_ns / max(1, duration_ns))


def _observed_ns(totals: ProcessTotals, duration_ns: int) -> int:
    return max(1, totals.observed_ns or duration_ns)


def _holds(totals: ProcessTotals) -> Sequence[HoldTotals]:
    return [gil.holds for gil in totals.gils if gil.holds is not None]


def _holders(totals: ProcessTotals) -> list[_RoleHolds]:
    tallies: dict[str, list[Tally]] = {}
    for thread in totals.threads:
        if thread.held is not None and (thread.held.ns or thread.held.count):
            role = printable(thread.role or "starting")
            tallies.setdefault(role, []).append(thread.held)
    holders = [
        _RoleHolds(role, sum(parts, start=Tally()), len(parts)) for role, parts in tallies.items()
    ]
    return sorted(holders, key=lambda holder: (-holder.tally.ns, holder.role))
