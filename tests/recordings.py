"""Recordings made by hand, for the tests of reports and collectors."""

from collections.abc import Mapping
from dataclasses import replace

from gilscope.histogram import EMPTY, Histogram
from gilscope.model import (
    Cause,
    Gil,
    GilTotals,
    Kind,
    Observation,
    Process,
    ProcessTotals,
    Recording,
    Tally,
    ThreadTotals,
)

__all__ = ["MS", "PROCESS", "convoy", "gil", "histogram", "observation", "thread"]

MS = 1_000_000

PROCESS = Process(
    pid=4711, name="app.py", python="3.11.2", build_id="571d98e01096ffff", method="sites"
)


def histogram(*values_ns: int) -> Histogram:
    """Return a histogram of the given values."""
    made = EMPTY
    for ns in values_ns:
        made = made.with_value(ns)
    return made


def thread(
    tid: int, role: str | None, lost: Mapping[Kind, Tally], *, waiting_ns: int = 0
) -> ThreadTotals:
    """Return a thread that has lost what *lost* says, and nothing else."""
    whole = {kind: lost.get(kind, Tally()) for kind in Kind}
    return ThreadTotals(tid, role, whole, drop_requests=0, waiting_ns=waiting_ns)


def gil(interpreter_id: int = 0, **waits: Histogram) -> GilTotals:
    """Return a lock with the given histograms by cause."""
    return GilTotals(
        gil=Gil(4096 + interpreter_id, interpreter_id),
        interval_ns=5 * MS,
        waits={cause: waits.get(cause.value, EMPTY) for cause in Cause},
        drop_latency=EMPTY,
        convoy_waits=0,
        forced_switches=0,
        drop_requests=0,
    )


def observation(
    threads: tuple[ThreadTotals, ...] = (),
    gils: tuple[GilTotals, ...] = (),
    lost_events: Mapping[str, int] | None = None,
) -> Observation:
    """Return what was seen of one process in a second."""
    return Observation(
        process=PROCESS,
        since_ns=0,
        totals=ProcessTotals(1000 * MS, threads, gils, lost_events or {}),
    )


def convoy() -> Recording:
    """Return two seconds of a server thread that waits behind two that compute."""
    threads = (
        thread(
            1,
            "serve (app.py:8)",
            {Kind.CONVOY: Tally(1500 * MS, 100), Kind.BLOCKING_CALL: Tally(30 * MS, 25)},
        ),
        thread(2, "crunch (app.py:2)", {Kind.PREEMPTION: Tally(200 * MS, 50)}),
        thread(3, "crunch (app.py:2)", {Kind.PREEMPTION: Tally(210 * MS, 60)}, waiting_ns=3 * MS),
    )
    lock = replace(
        gil(
            blocking_call=histogram(*[15 * MS] * 100, *[MS] * 25),
            preemption=histogram(*[4 * MS] * 110),
        ),
        drop_latency=histogram(*[90_000] * 200),
        convoy_waits=100,
        forced_switches=110,
        drop_requests=230,
    )
    seen = observation(threads, (lock,), {"began_unseen": 2})
    return Recording(seen, mode="contention", duration_ns=2000 * MS)
