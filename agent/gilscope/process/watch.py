"""What all share that trace processes: one reader of memory, and one eye on who ends."""

import contextlib
import os
import select
from typing import Self

from gilscope.process.memory_reader import MemoryReader

__all__ = ["ProcessWatch"]


class ProcessWatch:
    """The processes whose ends are awaited, and what their memory is read by.

    Can itself be waited for, as a descriptor.
    """

    def __init__(self) -> None:
        self.reader = MemoryReader()
        self._poll = select.epoll()
        self._bell = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._poll.register(self._bell, select.EPOLLIN)
        self._pid_of: dict[int, int] = {}
        """By pidfd, of the processes that have not ended."""

    def fileno(self) -> int:
        """Return a descriptor that is readable while `ended` has something to tell.

        After `wake` it is, too, until `ended` is asked.
        """
        return self._poll.fileno()

    def add(self, pidfd: int, pid: int) -> None:
        """Wait for the end of *pid*, which *pidfd* stands for."""
        self._poll.register(pidfd, select.EPOLLIN)
        self._pid_of[pidfd] = pid

    def remove(self, pidfd: int) -> None:
        """Wait for the end of that process no more."""
        del self._pid_of[pidfd]
        self._poll.unregister(pidfd)

    def wake(self) -> None:
        """Have whoever waits look after all processes now."""
        os.eventfd_write(self._bell, 1)

    def ended(self) -> set[int]:
        """Return the processes that have ended; each is to be removed."""
        ready = {fd for fd, _ in self._poll.poll(0)}
        if self._bell in ready:
            with contextlib.suppress(BlockingIOError):  # another thread was faster
                os.eventfd_read(self._bell)
        return {self._pid_of[fd] for fd in ready & self._pid_of.keys()}

    def close(self) -> None:
        """Wait for nothing any more, and read nothing."""
        self._poll.close()
        os.close(self._bell)
        self.reader.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
