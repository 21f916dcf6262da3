"""Reads the memory of processes in other threads, and gives up on what does not answer.

A page may come from a program (FUSE), over a network, or from a disk that has died. Who reads it
waits for ever, beyond the reach of signals; here that is a thread that nobody needs any more.
"""

import errno
import logging
import queue
import threading
from collections.abc import Callable
from typing import Any, Final, TypeVar

from gilscope.system.waiting_thread import Waiting, waits_for_memory

__all__ = ["MemoryReader", "ReadUnanswered"]

_log = logging.getLogger(__name__)

_T = TypeVar("_T")

_PATIENCE_S: Final = 2.0
_ASKED_S: Final = 0.1
_MOST_HANGING: Final = 16


class ReadUnanswered(OSError):
    """A process has memory that does not answer. Nothing more is read of it."""


class _Task:
    """Something that is read in a thread of its own, as long as somebody wants to have it."""

    def __init__(self, read: Callable[[], Any], discard: Callable[[Any], None] | None) -> None:
        self._read = read
        self._discard = discard
        self._lock = threading.Lock()
        self._is_given_up = False
        self.done = threading.Event()
        self.result: Any = None
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            self.result = self._read()
        except BaseException as raised:  # noqa: BLE001 - it is raised where it is waited for
            self.error = raised
        with self._lock:
            is_late = self._is_given_up
            self.done.set()
        if is_late and self.error is None and self._discard is not None:
            self._discard(self.result)

    def give_up(self) -> bool:
        """Return whether it has not ended; then what comes of it is discarded."""
        with self._lock:
            self._is_given_up = not self.done.is_set()
            return self._is_given_up


class _Worker:
    """A thread that does one task after the other."""

    def __init__(self) -> None:
        self._tasks: queue.SimpleQueue[_Task | None] = queue.SimpleQueue()
        self.thread = threading.Thread(target=self._run, name="memory-reader", daemon=True)
        self.thread.start()

    def put(self, task: _Task | None) -> None:
        """Do *task* next; None: end."""
        self._tasks.put(task)

    @property
    def waits_for_memory(self) -> bool:
        """Whether it waits for a page just now."""
        return waits_for_memory(self.thread.native_id or 0)

    def _run(self) -> None:
        while (task := self._tasks.get()) is not None:
            task.run()
            del task  # or what it has read is kept until the next one comes


class MemoryReader:
    """Reads for whoever asks, several at a time."""

    def __init__(self, *, patience_s: float = _PATIENCE_S) -> None:
        """Give up on what has waited for memory for *patience_s*."""
        self._patience_s = patience_s
        self._lock = threading.Lock()
        self._freed = threading.Condition(self._lock)
        self._busy = 0
        self._idle: list[_Worker] = []
        self._hanging: list[threading.Thread] = []

    @property
    def is_exhausted(self) -> bool:
        """Whether so many threads hang that no further process should be read."""
        with self._lock:
            self._hanging = [thread for thread in self._hanging if thread.is_alive()]
            return len(self._hanging) >= _MOST_HANGING

    def read(
        self,
        pid: int,
        read: Callable[[], _T],
        *,
        discard: Callable[[_T], None] | None = None,
        waited: Callable[[float], None] | None = None,
    ) -> _T:
        """Return what *read*, which reads process *pid*, returns, or raise what it raises.

        It runs in another thread, while locks of this one are held as they are. Raises
        ReadUnanswered where that waits too long; what comes of it after all is given to *discard*.
        *waited* is told the seconds for which memory was waited for.
        """
        task, worker, waiting = _Task(read, discard), self._worker(), Waiting()
        worker.put(task)
        waited_s = waiting.note(worker, waits=False)
        # Nearly all end at once: only later is it worth while to see what they wait for.
        while not task.done.wait(_ASKED_S):
            waited_s = waiting.note(worker, waits=worker.waits_for_memory)
            if waited_s >= self._patience_s and task.give_up():
                self._lose(worker, pid)
                raise ReadUnanswered(errno.ETIMEDOUT, f"memory of process {pid} does not answer")
        with self._freed:
            self._busy -= 1
            self._idle.append(worker)
            self._freed.notify()
        if waited is not None and waited_s:
            waited(waited_s)
        if task.error is not None:
            raise task.error
        result: _T = task.result
        return result

    def close(self) -> None:
        """End the threads that do not hang."""
        with self._lock:
            idle, self._idle = self._idle, []
        for worker in idle:
            worker.put(None)
            worker.thread.join()

    def _worker(self) -> _Worker:
        with self._freed:
            if not self._idle:
                try:
                    self._idle.append(_Worker())
                except RuntimeError:
                    # There is no room for one more thread: one of those that are there will do.
                    if not self._busy or not self._freed.wait_for(self._has_idle, self._patience_s):
                        raise
            self._busy += 1
            return self._idle.pop()

    def _has_idle(self) -> bool:
        return bool(self._idle)

    def _lose(self, worker: _Worker, pid: int) -> None:
        worker.put(None)
        with self._lock:
            self._busy -= 1
            self._hanging.append(worker.thread)
        _log.warning("memory of process %d does not answer; it is not read any more", pid)
