"""Reads the memory of processes in other threads, and gives up on what does not answer.

A page may come from a program (FUSE), over a network, or from a disk that has died. Who reads it
waits for ever, beyond the reach of signals; here that is a thread that nobody needs any more.
"""

import errno
import logging
import queue
import threading
from collections.abc import Callable, Sequence
from typing import Any, Final, Generic, TypeVar, cast

from gilscope.system.named_thread import named_thread
from gilscope.system.waiting_thread import Waiting, waits_for_memory
from gilscope.values import dataclass

__all__ = ["Answer", "MemoryReader", "ReadUnanswered", "Reading"]

_log = logging.getLogger(__name__)

_T = TypeVar("_T")

_PATIENCE_S: Final = 2.0
_ASKED_S: Final = 0.1
_MOST_HANGING: Final = 16


class ReadUnanswered(OSError):
    """A process has memory that does not answer. Nothing more is read of it."""


class _Hanging(ReadUnanswered):
    """The thread that reads it hangs just now."""


@dataclass(frozen=True, slots=True)
class Reading(Generic[_T]):
    """Something that is to be read of one process."""

    pid: int
    read: Callable[[], _T]
    """It runs in another thread, while locks of the one that asks are held as they are."""
    discard: Callable[[_T], None] | None = None
    """Given what comes of it after all when nobody waits for it any more."""
    waited: Callable[[float], None] | None = None
    """Told the seconds for which memory was waited for."""


@dataclass(frozen=True, slots=True)
class Answer(Generic[_T]):
    """What has come of it: a result, unless there is an error."""

    result: _T | None = None
    error: BaseException | None = None

    def get(self) -> _T:
        """Return the result, or raise the error."""
        if self.error is not None:
            raise self.error
        return cast("_T", self.result)


class _Task:
    """Something that is read in a thread of its own, as long as somebody wants to have it."""

    def __init__(self, reading: Reading[Any]) -> None:
        self.reading = reading
        self._lock = threading.Lock()
        self._is_given_up = False
        # Held until it has ended. An event takes several times as long, and of a thousand processes
        # a thousand tasks are made at once.
        self._undone = threading.Lock()
        self._undone.acquire()
        self.answer: Answer[Any] = Answer()

    def run(self) -> None:
        if self._is_given_up:
            return  # before it was begun: somebody else reads it
        try:
            answer = Answer(self.reading.read())
        except BaseException as raised:  # noqa: BLE001 - it is raised where it is waited for
            answer = Answer(error=raised)
        with self._lock:
            is_late = self._is_given_up
            self.answer = answer
            self._undone.release()
        if is_late and answer.error is None and self.reading.discard is not None:
            self.reading.discard(answer.result)

    def wait(self, timeout_s: float) -> bool:
        """Wait until it has ended, and return whether it has; not to be asked again then."""
        return self._undone.acquire(timeout=timeout_s)

    def give_up(self) -> bool:
        """Return whether it has not ended; then what comes of it is discarded."""
        with self._lock:
            self._is_given_up = self._undone.locked()
            return self._is_given_up


class _Worker:
    """A thread that does one task after the other."""

    def __init__(self) -> None:
        self._tasks: queue.SimpleQueue[_Task | None] = queue.SimpleQueue()
        self.thread = named_thread("memory-reader", self._run)
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

        For all of these see `Reading`. Raises ReadUnanswered where it waits too long.
        """
        (answer,) = self.read_each([Reading(pid, read, discard, waited)])
        return answer.get()

    def read_each(self, readings: Sequence[Reading[_T]]) -> list[Answer[_T]]:
        """Return the answer to each of *readings*; one that hangs keeps no other from being read.

        They are handed to another thread at once: to wait for a thousand, one after the other, took
        most of a second.
        """
        answers: list[Answer[_T]] = []
        while len(answers) < len(readings):
            left = readings[len(answers) :]
            try:
                answers += self._read_up_to_one_that_hangs(left)
            except RuntimeError as error:
                # There is no thread for what is left.
                answers += [Answer(error=error)] * len(left)
        return answers

    def _read_up_to_one_that_hangs(self, readings: Sequence[Reading[_T]]) -> list[Answer[_T]]:
        worker, tasks = self._worker(), [_Task(reading) for reading in readings]
        for task in tasks:
            worker.put(task)
        answers: list[Answer[_T]] = []
        for task in tasks:
            answers.append(self._answer(worker, task))
            if isinstance(answers[-1].error, _Hanging):
                # Whenever that thread comes back, it must not read what another one has read since.
                for later in tasks[len(answers) :]:
                    later.give_up()
                self._lose(worker, task.reading.pid)
                return answers
        with self._freed:
            self._busy -= 1
            self._idle.append(worker)
            self._freed.notify()
        return answers

    def _answer(self, worker: _Worker, task: _Task) -> Answer[Any]:
        waiting = Waiting()
        waited_s = waiting.note(worker, waits=False)
        # Nearly all end at once: only later is it worth while to see what they wait for.
        while not task.wait(_ASKED_S):
            waited_s = waiting.note(worker, waits=worker.waits_for_memory)
            if waited_s >= self._patience_s and task.give_up():
                pid = task.reading.pid
                words = f"memory of process {pid} does not answer"
                return Answer(error=_Hanging(errno.ETIMEDOUT, words))
        if task.reading.waited is not None and waited_s:
            task.reading.waited(waited_s)
        return task.answer

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
