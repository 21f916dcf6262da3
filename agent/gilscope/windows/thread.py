"""The thread that opens and ends windows on time, whatever else happens."""

import logging
import os
import select
import time
from collections.abc import Callable

from gilscope.bpf.ringbuf import Ring
from gilscope.system.named_thread import named_thread

__all__ = ["WindowThread"]

_log = logging.getLogger(__name__)

_NS_PER_S = 1_000_000_000
_LONGEST_S = 0.4
"""Much less than the silence after which windows are closed; it also makes up for lost notices."""
_AFTER_FAILURE_S = 0.4
_PATIENCE_S = 5.0


class WindowThread:
    """Calls what steps windows when one is due, and when one has ended by itself."""

    def __init__(
        self, name: str, notices: Ring, step: Callable[[], None], due_ns: Callable[[], int]
    ) -> None:
        """Begin to call *step* in a thread of that *name*, by the clock that *due_ns* is of.

        That is CLOCK_MONOTONIC. *step* is to take what is in *notices*.
        """
        self._step = step
        self._due_ns = due_ns
        self._is_closed = False
        self._wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._poll = select.epoll()
        self._poll.register(notices.fileno(), select.EPOLLIN)
        self._poll.register(self._wake, select.EPOLLIN)
        self._thread = named_thread(name, self._run)
        self._thread.start()

    def wake(self) -> None:
        """Have it check again what is due."""
        os.eventfd_write(self._wake, 1)

    def close(self) -> None:
        """End it. Nobody must hold a lock that *step* needs."""
        if self._is_closed:
            return
        self._is_closed = True
        self.wake()
        self._thread.join(_PATIENCE_S)
        self._poll.close()
        os.close(self._wake)

    def _run(self) -> None:
        while not self._is_closed:
            left_s = (self._due_ns() - time.monotonic_ns()) / _NS_PER_S
            ready = {fd for fd, _ in self._poll.poll(min(_LONGEST_S, max(0.0, left_s)))}
            if self._wake in ready:
                os.eventfd_read(self._wake)
            if self._is_closed:
                return
            try:
                self._step()
            except Exception:  # noqa: BLE001 - see below
                # One process must not end the windows of the others; the log tells what to report.
                _log.exception("could not look after the windows this time")
                time.sleep(_AFTER_FAILURE_S)
