"""Observations as of now, for what `serve` shows of the last minutes."""

import time
from dataclasses import replace

from gilscope.model.gil import GilObservation
from support.recordings.gil import PROCESS, convoy

__all__ = ["FAR", "SECOND", "seen"]

SECOND = 1_000_000_000
FAR = 1 << 30
"""No process of this machine."""


def seen(
    what: GilObservation | None = None,
    pid: int = FAR,
    *,
    at_ns: int | None = None,
    traced_for_s: int = 100,
) -> GilObservation:
    """Return *what* as of *at_ns*, or now, of a process that is *traced_for_s* then."""
    what = convoy().observation if what is None else what
    at_ns = time.monotonic_ns() if at_ns is None else at_ns
    return replace(
        what,
        process=replace(PROCESS, pid=pid),
        since_ns=at_ns - traced_for_s * SECOND,
        totals=replace(what.totals, at_ns=at_ns),
    )
