"""Captures what a process does when a wait passes a limit: one at a time, and not too often."""

import logging
import queue
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from itertools import count
from zlib import compress

from gilscope.model.moment.capture import Capture
from gilscope.model.moment.dump import Dump
from gilscope.reports.dump import json as dump_json
from gilscope.reports.dump import text as dump_text
from gilscope.reports.dump.words import verdict
from gilscope.system.named_thread import named_thread
from gilscope.text.printable import printable

__all__ = ["EVERY_S", "Captures", "Outcome"]

_log = logging.getLogger(__name__)

EVERY_S = 60.0
"""Between two captures of one process."""
_MOST_WAITING = 16
"""Processes that wait to be captured, after which it would be too late."""
_MOST_KEPT = 10
_PATIENCE_S = 2.5
"""What is being captured may wait for memory that does not answer, though not for long."""


class Outcome(Enum):
    """What became of a wait that passed the limit; the values are those of the label."""

    WRITTEN = "written"
    SUPPRESSED = "suppressed"
    FAILED = "failed"


class Captures:
    """Takes captures in a thread of its own, so that nothing else waits for them."""

    def __init__(
        self,
        take: Callable[[int, int], Dump | None],
        write: Callable[[Dump, str], None],
        *,
        every_s: float = EVERY_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Have *take* dump a process of which a thread waits, and *write* keep it as JSON.

        *take* returns None for a process that has gone. Whatever either raises is counted.
        """
        self._take = take
        self._write = write
        self._every_s = every_s
        self._clock = clock
        self._lock = threading.Lock()
        self._begun_s: dict[int, float] = {}
        """When each process was last captured."""
        self._pending: set[int] = set()
        self._wanted: queue.SimpleQueue[tuple[int, int] | None] = queue.SimpleQueue()
        self._counts: Counter[Outcome] = Counter()
        self._numbers = count(1)
        self._kept: deque[Capture] = deque(maxlen=_MOST_KEPT)
        self._thread = named_thread("captures", self._run)

    def begin(self) -> None:
        """Begin to take what is wanted."""
        self._thread.start()

    def want(self, pid: int, tid: int) -> None:
        """Have *pid* captured, in which thread *tid* waits. Returns at once."""
        with self._lock:
            if pid in self._pending:
                return  # it is in the capture that is being taken
            now_s = self._clock()
            self._begun_s = {
                each: at_s for each, at_s in self._begun_s.items() if now_s - at_s < self._every_s
            }
            if pid in self._begun_s or len(self._pending) >= _MOST_WAITING:
                self._counts[Outcome.SUPPRESSED] += 1
                return
            self._begun_s[pid] = now_s
            self._pending.add(pid)
        self._wanted.put((pid, tid))

    def counts(self) -> Mapping[str, int]:
        """Return how many waits had which outcome, by the names of these."""
        with self._lock:
            return {each.value: self._counts[each] for each in Outcome}

    def recent(self) -> Sequence[Capture]:
        """Return the last captures, the latest first."""
        with self._lock:
            return tuple(reversed(self._kept))

    def close(self) -> None:
        """Take no more; what is being taken is finished if it does not take too long."""
        self._wanted.put(None)
        if self._thread.is_alive():
            self._thread.join(_PATIENCE_S)

    def _run(self) -> None:
        while (wanted := self._wanted.get()) is not None:
            pid, tid = wanted
            outcome = self._outcome(pid, tid)
            with self._lock:
                self._pending.discard(pid)
                self._counts[outcome] += 1

    def _outcome(self, pid: int, tid: int) -> Outcome:
        try:
            dump = self._take(pid, tid)
            if dump is None:
                return Outcome.FAILED
            line = dump_json.render_line(dump)
            # Who looks at the page has it, wherever else it cannot go.
            self._keep(dump, line)
            self._write(dump, line)
        except OSError as error:
            where = "" if error.filename is None else f" {printable(str(error.filename))}"
            _log.error("could not capture process %d:%s %s", pid, where, error.strerror or error)
            return Outcome.FAILED
        except Exception:  # noqa: BLE001 - whatever fails, the agent continues
            _log.exception("could not capture process %d", pid)
            return Outcome.FAILED
        return Outcome.WRITTEN

    def _keep(self, dump: Dump, line: str) -> None:
        capture = Capture(
            number=next(self._numbers),
            at_ns=dump.at_ns,
            pid=dump.pid,
            process=dump.process,
            verdict=tuple(verdict(dump)),
            text=compress(dump_text.render(dump).encode()),
            json=compress(f"{line}\n".encode()),
        )
        with self._lock:
            self._kept.append(capture)
