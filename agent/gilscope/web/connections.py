"""Bounds how many connections there are, and for how long."""

import contextlib
import math
import socket
import threading
import time

from gilscope.values import dataclass

__all__ = ["Connections"]

_MOST = 32
_LONGEST_S = 60.0
"""A scrape takes seconds at worst, and Prometheus gives up after ten by default."""


@dataclass(slots=True)
class _Open:
    """What is used at the moment of a connection that was accepted."""

    used: socket.socket
    since_s: float


class Connections:
    """Those that are open. Its methods may be called by several threads.

    When there are too many, the oldest goes: who sends a request and reads the answer has done so
    long before. So clients that keep connections and say nothing shut out nobody.
    """

    def __init__(self, most: int = _MOST, longest_s: float = _LONGEST_S) -> None:
        """Keep at most *most*, each for at most *longest_s*."""
        self._most, self._longest_s = most, longest_s
        self._open: dict[socket.socket, _Open] = {}
        self._turn = threading.Lock()

    def __len__(self) -> int:
        return len(self._open)

    def add(self, accepted: socket.socket) -> bool:
        """Note a connection that was just accepted; return whether it is to be answered.

        It is not if those that were ended to make room are still busy otherwise.
        """
        with self._turn:
            if len(self._open) >= 2 * self._most:
                return False
            self._open[accepted] = _Open(accepted, time.monotonic())
            for connection in list(self._open.values())[: -self._most]:
                _end(connection.used)
            return True

    def replace(self, accepted: socket.socket, used: socket.socket) -> None:
        """Note that *accepted* is used through *used* from now on."""
        with self._turn:
            self._open[accepted].used = used

    def remove(self, accepted: socket.socket) -> None:
        """Forget a connection that has ended."""
        with self._turn:
            self._open.pop(accepted, None)

    def end_overdue(self) -> None:
        """End those that have been there for too long."""
        self._end_before(time.monotonic() - self._longest_s)

    def end_all(self) -> None:
        """End those that are there."""
        self._end_before(math.inf)

    def _end_before(self, since_s: float) -> None:
        with self._turn:
            for connection in self._open.values():
                if connection.since_s < since_s:
                    _end(connection.used)


def _end(connection: socket.socket) -> None:
    # Whoever reads from it or writes to it gets an error. An encrypted one would forget its keys
    # while its thread is using them, hence the method of the base class.
    with contextlib.suppress(OSError):
        socket.socket.shutdown(connection, socket.SHUT_RDWR)
