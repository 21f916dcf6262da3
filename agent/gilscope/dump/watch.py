"""Captures processes that are traced, with what the tracer has counted of them."""

import logging
import time
from dataclasses import replace

from gilscope.dump.figures import with_figures
from gilscope.dump.process import opened
from gilscope.dump.take import take
from gilscope.gil.tracing.account import GilAccount
from gilscope.model.gil import GilObservation
from gilscope.model.moment.dump import Dump, Trigger
from gilscope.process.memory_reader import MemoryReader
from gilscope.series.past import Past
from gilscope.series.since import observation_since
from gilscope.text.units import NS_PER_S

__all__ = ["TracedProcesses"]

_log = logging.getLogger(__name__)

_LATELY_NS = 30 * NS_PER_S


class TracedProcesses:
    """What is captured of the processes in *gils*. One thread may use it."""

    def __init__(self, gils: GilAccount, past: Past[GilObservation], limit_ns: int) -> None:
        """*past* knows what was before; waits are captured that last *limit_ns*."""
        self._gils = gils
        self._past = past
        self._limit_ns = limit_ns
        self._reader = MemoryReader()

    def capture(self, pid: int, tid: int) -> Dump | None:
        """Return what *pid* does now, in which *tid* waits; None where it is not traced any more.

        Raises OSError, TornRead and GilscopeError.
        """
        traced = self._gils.attached(pid)
        if traced is None:
            return None
        process = traced.target.process
        roles = dict(traced.runtime.threads.known)
        build, place = traced.target.build, traced.requests.place
        with opened(process.name, build, self._reader, roles, place) as subject:
            # Another program may have taken its place, with memory of its own.
            if self._gils.attached(pid) is not traced:
                return None
            at_ns = time.monotonic_ns()
            dump = take(subject)
        trigger = Trigger(tid, self._limit_ns, self._limit_ns)
        # What lasts is looked at first. Without the sums it is still worth having.
        try:
            return self._counted(dump, at_ns, trigger)
        except Exception:  # noqa: BLE001 - see above
            _log.exception("could not read what was counted of process %d", pid)
            return replace(dump, trigger=trigger)

    def _counted(self, dump: Dump, at_ns: int, trigger: Trigger) -> Dump:
        """Return *dump*, which is of *at_ns*, with what was counted until now."""
        seen = next((each for each in self._gils.observe() if each.process.pid == dump.pid), None)
        if seen is None or seen.invalid:
            return replace(dump, trigger=trigger)
        earlier = self._past.near(seen.totals.at_ns - _LATELY_NS, seen)
        return with_figures(
            dump,
            seen,
            seen if earlier is None else observation_since(seen, earlier),
            later_ns=seen.totals.at_ns - at_ns,
            trigger=trigger,
        )

    def close(self) -> None:
        """Read nothing any more."""
        self._reader.close()
