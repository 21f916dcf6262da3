"""The lines at the top of the live view: what it shows, and agent health."""

from dataclasses import field

from gilscope.model.application import EVERYBODYS, Application
from gilscope.model.locks import LockObservation, LockTotals
from gilscope.model.transactions import StmObservation, StmTotals
from gilscope.text.printable import printable
from gilscope.text.units import counted, megabytes, percent
from gilscope.top.columns import Order
from gilscope.top.layout import Line, Span, Tone
from gilscope.top.rates import ProcessRates
from gilscope.top.snapshot import Snapshot
from gilscope.values import dataclass

__all__ = ["Settings", "totals_line", "view_line"]


@dataclass(frozen=True, slots=True)
class Settings:
    """What the view shows, and how."""

    mode: str
    interval_s: float
    order: Order = field(default_factory=Order)
    words: str = ""
    """Only processes with these words in them are shown; empty: all of them."""
    application: Application = EVERYBODYS
    """Whose code is told apart from libraries'."""
    is_paused: bool = False
    shows_roles: bool = True


def view_line(settings: Settings) -> Line:
    """Return what is shown."""
    order = settings.order
    direction = ", reversed" if order.is_reversed else ""
    spans = [Span("gilscope top", Tone.BOLD), Span(f"  by {order.name}{direction}")]
    if settings.is_paused:
        spans.append(Span("  PAUSED", Tone.BAD))
    if settings.words:
        spans.append(Span(f"  only: {printable(settings.words)}", Tone.BOLD))
    spans.append(Span(f"  {settings.mode} mode, every {settings.interval_s:g} s"))
    return tuple(spans)


def totals_line(snapshot: Snapshot, problems: int = 0) -> Line:
    """Return how many processes are in which state, what was lost, and what the agent uses.

    *problems* are those that its log tells of.
    """
    if snapshot.agent is None:
        return (Span("looking for processes", Tone.DIM),)
    every: list[ProcessRates | StmObservation | LockObservation] = [
        *snapshot.processes,
        *snapshot.stm_observations,
        *(each.seen for each in snapshot.without_gil),
    ]
    invalid = sum(1 for seen in every if seen.invalid)
    ended = sum(1 for seen in every if seen.ended and not seen.invalid)
    lost = sum(seen.lost_events for seen in snapshot.processes)
    others: list[StmTotals | LockTotals] = [each.totals for each in snapshot.stm_observations]
    others += [each.totals for each in snapshot.lock_observations if each.totals is not None]
    lost += sum(sum(totals.lost_events.values()) for totals in others)
    spans = [Span(f"{len(every) - invalid - ended} traced")]
    spans += [Span(f", {ended} ended")] if ended else []
    spans += [Span(f", {invalid} not reported", Tone.BAD)] if invalid else []
    spans += [Span(f", {len(snapshot.refusals)} refused", Tone.BAD)] if snapshot.refusals else []
    spans += (
        [Span(f"  {_count(problems, 'problem')}, told at the end", Tone.BAD)] if problems else []
    )
    spans.append(Span(f"  {_count(lost, 'event')} lost", Tone.BAD if lost else Tone.PLAIN))
    used = "" if snapshot.cpu_share is None else f"{percent(snapshot.cpu_share)} CPU, "
    spans.append(Span(f"  agent: {used}{megabytes(snapshot.agent.private_bytes)}"))
    return tuple(spans)


def _count(number: int, what: str) -> str:
    return counted(number, what) if number else f"no {what}s"
