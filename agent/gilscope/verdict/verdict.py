"""The one sentence that a recording comes to: how bad it is, and of which kind."""

from gilscope.model.gil import Recording
from gilscope.values import dataclass
from gilscope.verdict.convoys import Convoy, convoys_of
from gilscope.verdict.degree import Degree, degree_of_waiting
from gilscope.verdict.hogs import Hog, hog_of

__all__ = ["Verdict", "verdict_of"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """How bad it is in one process, and the costliest pattern that makes it so."""

    degree: Degree
    waiting: float
    """Threads that wait at any moment, on average."""
    hog: Hog | None
    convoy: Convoy | None
    """None: there is none, or a hog, behind which threads queue as well."""


def verdict_of(recording: Recording) -> Verdict:
    """Return what *recording* comes to."""
    totals = recording.observation.totals
    duration_ns = recording.duration_ns
    waiting = totals.wait_ns / max(1, duration_ns)
    hog = hog_of(totals, recording.application, duration_ns)
    if hog is not None:
        return Verdict(Degree.SEVERE, waiting, hog, None)
    convoy = next(iter(convoys_of(recording)), None)
    degree = degree_of_waiting(waiting, _held(recording))
    if convoy is not None:
        degree = max(degree, convoy.degree)
    return Verdict(degree, waiting, None, convoy)


def _held(recording: Recording) -> float | None:
    totals = recording.observation.totals
    if totals.observed_ns:
        holds = [gil.holds.held_ns for gil in totals.gils if gil.holds is not None]
        return sum(holds) / totals.observed_ns if holds else None
    known = [gil.held_ns for gil in totals.gils if gil.held_ns is not None]
    return sum(known) / max(1, recording.duration_ns) if known else None
