"""Remembers what a source has shown in the last minutes, for those who view the page."""

import logging
import threading
import time
from collections.abc import Callable, Sequence

from gilscope.exporter.source import Logs, Source
from gilscope.model.gil import GilObservation
from gilscope.model.locks import LockObservation
from gilscope.model.observation import Observation
from gilscope.model.transactions import StmObservation
from gilscope.series.blocking import BlockingSeries
from gilscope.series.past import Past, Pasts
from gilscope.series.recent import Curve, History, Totals
from gilscope.stm_log.sums import FollowedLog
from gilscope.text.units import NS_PER_S

__all__ = ["SourceHistory"]

_log = logging.getLogger(__name__)

_UNWATCHED_NS = 10 * NS_PER_S
_REST = 200
"""For so many times the CPU time of the last observation by itself there is none: hundreds of
processes take a second."""
_LONGEST_UNWATCHED_NS = 60 * NS_PER_S
_BEAT_S = 6.0
_UNKNOWN = -1
_MOST_LAG = 0.05
"""Of a log's size; what has more to be read is behind."""

_Key = tuple[int, int]
"""Pid and when it was attached to: numbers of processes come again."""


class SourceHistory:
    """A source, and the last minutes of what it has shown.

    Every scrape and every view of the page is a sample that is kept. Where Prometheus scrapes, that
    costs nothing more; where nothing does, there is a sample every ten seconds, or every minute at
    the least where processes are many, so that who opens the page sees what was before.
    """

    def __init__(
        self,
        source: Source,
        logs: Logs | None,
        unwatched_ns: int = _UNWATCHED_NS,
        *,
        past: Past[GilObservation] | None = None,
    ) -> None:
        """Watch *source*, and *logs* where they are followed; enter what is seen in *past*.

        `keep_up` observes when nobody has for *unwatched_ns*.
        """
        self._observe = source.observe
        self._logs = logs
        self._least_unwatched_ns = self._unwatched_ns = unwatched_ns
        self._observed_ns = 0
        self._processes: History[_Key] = History()
        self._transactions: History[_Key] = History()
        self._locked: History[_Key] = History()
        self._followed: History[str] = History()
        self.pasts = Pasts() if past is None else Pasts(past)

    def observe(self) -> Sequence[Observation]:
        """Return the state of every traced process now."""
        self._observed_ns = time.monotonic_ns()
        seen = self._observe()
        valid = [each.gil for each in seen if each.gil is not None and not each.gil.invalid]
        at_ns = max((each.totals.at_ns for each in valid), default=time.monotonic_ns())
        self._processes.enter(at_ns, {_key(each): _totals(each) for each in valid})
        self.pasts.gils.enter(at_ns, valid)
        live = [each.transactions for each in seen if each.transactions is not None]
        at_ns = max((each.totals.at_ns for each in live), default=time.monotonic_ns())
        self._transactions.enter(at_ns, {_key(each): _stm_totals(each) for each in live})
        self.pasts.transactions.enter(at_ns, live)
        locked = [each.locks for each in seen if each.locks is not None]
        locked = [each for each in locked if each.totals is not None and not each.invalid]
        at_ns = time.monotonic_ns()
        self._locked.enter(at_ns, {_key(each): _lock_totals(each) for each in locked})
        self.pasts.locks.enter(at_ns, locked)
        return seen

    def logs(self) -> Sequence[FollowedLog]:
        """Return what is known of the STM logs; none where none are followed."""
        if self._logs is None:
            return ()
        logs = self._logs()
        # What was written long ago would look like a loss of now.
        read = [log for log in logs if log.lag_bytes <= log.size * _MOST_LAG]
        self._followed.enter(
            time.monotonic_ns(), {log.name: Totals(_UNKNOWN, log.lost_ns) for log in read}
        )
        return logs

    def curves(self, seen: Sequence[GilObservation]) -> dict[int, Curve]:
        """Return the last minutes of the processes in *seen*, by pid."""
        return {
            each.process.pid: self._processes.curve(_key(each), each.totals.at_ns, _totals(each))
            for each in seen
            if not each.invalid
        }

    def stm_curves(self, seen: Sequence[StmObservation]) -> dict[int, Curve]:
        """Return the last minutes of the processes with transactions in *seen*, by pid."""
        return {
            each.process.pid: self._transactions.curve(
                _key(each), each.totals.at_ns, _stm_totals(each)
            )
            for each in seen
        }

    def lock_curves(self, seen: Sequence[LockObservation]) -> dict[int, Curve]:
        """Return the last minutes of the processes in *seen* whose locks are traced, by pid."""
        return {
            each.process.pid: self._locked.curve(_key(each), each.totals.at_ns, _lock_totals(each))
            for each in seen
            if each.totals is not None and not each.invalid
        }

    def log_curves(self, logs: Sequence[FollowedLog]) -> dict[str, Curve]:
        """Return the last minutes of *logs*, by name."""
        at_ns = time.monotonic_ns()
        return {
            log.name: self._followed.curve(log.name, at_ns, Totals(_UNKNOWN, log.lost_ns))
            for log in logs
        }

    def keep_up(
        self,
        book: BlockingSeries,
        stopped: threading.Event,
        beat: Callable[[], None] = lambda: None,
    ) -> None:
        """Observe, for *book* as well, whenever nobody else does, until *stopped* is set.

        *beat* is called again and again.
        """
        while not stopped.wait(min(self._due_ns() / NS_PER_S, _BEAT_S)):
            beat()
            if self._due_ns() > 0:
                continue  # somebody has meanwhile
            began_ns = time.thread_time_ns()
            try:
                with book.turn:
                    book.lately([each.gil for each in self.observe() if each.gil is not None], 0)
                self.logs()
            except Exception:  # noqa: BLE001 - the next time may well succeed
                _log.exception("could not observe what is traced this time")
            rest_ns = _REST * (time.thread_time_ns() - began_ns)
            self._unwatched_ns = max(self._least_unwatched_ns, min(rest_ns, _LONGEST_UNWATCHED_NS))

    def _due_ns(self) -> int:
        """Return for how long nobody needs to observe."""
        return max(0, self._observed_ns + self._unwatched_ns - time.monotonic_ns())


def _key(seen: GilObservation | StmObservation | LockObservation) -> _Key:
    return seen.process.pid, seen.since_ns


def _totals(seen: GilObservation) -> Totals:
    held = [gil.held_ns for gil in seen.totals.gils if gil.held_ns is not None]
    return Totals(
        seen.since_ns,
        seen.totals.wait_ns,
        sum(held) if held else None,
        len(held),
    )


def _lock_totals(seen: LockObservation) -> Totals:
    return Totals(seen.since_ns, 0 if seen.totals is None else seen.totals.contended_ns)


def _stm_totals(seen: StmObservation) -> Totals:
    aborted = seen.totals.aborted
    return Totals(seen.since_ns, 0 if aborted is None else aborted.sum_ns)
