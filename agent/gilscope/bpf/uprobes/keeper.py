"""The process that holds the probes, as the agent speaks to it; see ``agent/native/keeper``."""

import array
import contextlib
import errno
import os
import socket
import struct
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from itertools import count
from pathlib import Path
from typing import Final

from gilscope.errors import KernelOrBccMissing, LimitReached
from gilscope.process import procfs
from gilscope.system.named_thread import named_thread
from gilscope.system.rlimits import RESERVED, most_descriptors
from gilscope.values import dataclass

__all__ = ["EVERY_PROCESS", "LEASE_S", "Keeper", "Place", "WindowTable"]

PROGRAM: Final = Path(__file__).with_name("_keeper")

LEASE_S: Final = 2.0
"""After this silence of the agent windows are closed without it. Longer than an agent that works
is ever silent, and short, because its processes pay for it."""

EVERY_PROCESS: Final = 0
"""As the process of a place: all that map its file."""

_SOCKET: Final = 3
"""Where the keeper expects its end."""

# `struct request` and `struct reply` of agent/native/keeper/messages.h.
_HEADER: Final = struct.Struct("=II")
_SETUP: Final = struct.Struct("=III12x")
_OPEN: Final = struct.Struct("=iiIIQ")
_COUNT: Final = struct.Struct("=Q")
_REPLY: Final = struct.Struct("=IIi")
_REQUEST_SETUP, _REQUEST_OPEN, _REQUEST_CLOSE, _REQUEST_BEAT = range(4)
_, _REPLY_OPENED, _REPLY_CLOSED, _REPLY_LAPSED = range(4)

_NO_TIMER: Final = (
    "Its timer counts as a signal that waits: raise their limit (`ulimit -i`, RLIMIT_SIGPENDING)."
)

_AS_LINKS: Final = -1
_numbers = count(1)
"""Of requests, and so of groups: those of one keeper are none of the next one's."""
_MS_PER_S: Final = 1_000


@dataclass(frozen=True, slots=True)
class WindowTable:
    """The table that says when windows end, so that the keeper can end them there too."""

    fd: int
    value_size: int
    until_offset: int


@dataclass(frozen=True, slots=True)
class Place:
    """One program at some offsets of one file in one process."""

    program_fd: int
    path: str
    """Under which the agent can open the file; the keeper gets the open file."""
    offsets: Sequence[int]
    pid: int
    cookie: int = 0
    perf_type: int | None = None
    """Of uprobe events; None: a link is made."""
    is_window: bool = False
    """Taken out also when the agent falls silent; *cookie* is the window's slot then."""


class Keeper:
    """A running keeper. Any thread may call its methods."""

    def __init__(self, table: WindowTable | None = None, *, lease_s: float = LEASE_S) -> None:
        """Start it, with the *table* of windows if there is one. Raises KernelOrBccMissing."""
        own, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with its:
            try:
                self.pid = _spawn(its.fileno())
            except OSError as error:
                own.close()
                raise KernelOrBccMissing(
                    f"cannot start {PROGRAM}, which holds the probes: {error.strerror}",
                    remedy="Install gilscope again; it must be allowed to execute that file.",
                ) from error
        self._socket = own
        self._lock = threading.Lock()
        self._opening: dict[int, Future[None]] = {}
        self._closing: dict[int, Future[None]] = {}
        self._is_lost = False
        self._is_ending = False
        self.lapses = 0
        """How often windows were closed because of the agent's silence."""
        size, offset = (0, 0) if table is None else (table.value_size, table.until_offset)
        self._await_ready()
        setup = _SETUP.pack(int(lease_s * _MS_PER_S), size, offset)
        self._send(_REQUEST_SETUP, 0, setup, (), [] if table is None else [table.fd])
        self._reader = named_thread("keeper-reader", self._read)
        self._reader.start()

    @property
    def is_lost(self) -> bool:
        """Whether it has ended by itself, or is about to, and all probes with it."""
        return self._is_lost or procfs.is_ending(self.pid)

    def await_end(self) -> None:
        """Wait until it has ended, and no probe of it is left."""
        self._reader.join()
        self._socket.close()

    def open(self, place: Place) -> int:
        """Put probes in place and return the number that holds them there; raises OSError.

        ECONNRESET where the keeper has been lost.
        """
        opened: Future[None] = Future()
        arguments = _OPEN.pack(
            place.pid,
            _AS_LINKS if place.perf_type is None else place.perf_type,
            place.is_window,
            0,
            place.cookie,
        )
        file_fd = os.open(place.path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            if file_fd >= most_descriptors() - RESERVED:
                raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
            number = self._ask(
                _REQUEST_OPEN, arguments, place.offsets, opened, [place.program_fd, file_fd]
            )
            opened.result()
        finally:
            os.close(file_fd)
        return number

    def close(self, numbers: Sequence[int]) -> Future[None]:
        """Begin to take probes out; return what says when they are."""
        closed: Future[None] = Future()
        try:
            self._ask(_REQUEST_CLOSE, bytes(_OPEN.size), numbers, closed)
        except ConnectionError:
            # With the keeper all probes have gone.
            closed.set_result(None)
        return closed

    def beat(self) -> None:
        """Say that the agent is alive."""
        with contextlib.suppress(ConnectionError):
            self._send(_REQUEST_BEAT, 0, bytes(_OPEN.size), (), [])

    def end(self) -> None:
        """Take out whatever is left, and wait until the keeper has ended."""
        self._is_ending = True
        self._socket.shutdown(socket.SHUT_WR)
        self._reader.join()
        self._socket.close()

    def _await_ready(self) -> None:
        reply = self._socket.recv(_REPLY.size)
        error = _REPLY.unpack(reply)[2] if len(reply) == _REPLY.size else errno.ECHILD
        if not error:
            return
        self._socket.close()
        os.waitpid(self.pid, 0)
        failed = f"the process that holds the probes cannot begin: {os.strerror(error)}"
        if error == errno.EAGAIN:
            raise LimitReached(failed, remedy=_NO_TIMER)
        raise KernelOrBccMissing(failed)

    def _ask(
        self,
        kind: int,
        arguments: bytes,
        items: Sequence[int],
        answered: Future[None],
        descriptors: Sequence[int] = (),
    ) -> int:
        number = next(_numbers)
        waiting = self._opening if kind == _REQUEST_OPEN else self._closing
        with self._lock:
            if self._is_lost:
                raise _lost()
            waiting[number] = answered
        try:
            self._send(kind, number, arguments, items, descriptors)
        except ConnectionError:
            with self._lock:
                waiting.pop(number, None)
            raise
        return number

    def _send(
        self,
        kind: int,
        number: int,
        arguments: bytes,
        items: Sequence[int],
        descriptors: Sequence[int],
    ) -> None:
        message = [
            _HEADER.pack(kind, number),
            arguments,
            _COUNT.pack(len(items)),
            array.array("Q", items).tobytes(),
        ]
        try:
            socket.send_fds(self._socket, [b"".join(message)], list(descriptors))
        except OSError as error:
            raise _lost() from error

    def _read(self) -> None:
        while True:
            try:
                reply = self._socket.recv(_REPLY.size)
            except OSError:
                reply = b""
            if len(reply) != _REPLY.size:
                break
            self._take(*_REPLY.unpack(reply))
        with self._lock:
            self._is_lost = True
            opening, self._opening = self._opening, {}
            closing, self._closing = self._closing, {}
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.pid, 0)
        for future in opening.values():
            future.set_exception(_lost())
        for future in closing.values():
            future.set_result(None)

    def _take(self, kind: int, number: int, error: int) -> None:
        if kind == _REPLY_LAPSED:
            # The last one comes when it is asked to end, and there is nothing to close any more.
            self.lapses += not self._is_ending
            return
        with self._lock:
            waiting = self._opening if kind == _REPLY_OPENED else self._closing
            future = waiting.pop(number, None)
        if future is None:
            return
        if error:
            future.set_exception(OSError(error, os.strerror(error)))
        else:
            future.set_result(None)


def _spawn(its_end: int) -> int:
    nothing = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0) for fd in range(_SOCKET)]
    # Of a session of its own: what a terminal sends to the agent is not for its keeper.
    return os.posix_spawn(
        PROGRAM,
        [str(PROGRAM)],
        {},
        file_actions=[(os.POSIX_SPAWN_DUP2, its_end, _SOCKET), *nothing],
        setsid=True,
    )


def _lost() -> ConnectionError:
    return ConnectionResetError(errno.ECONNRESET, "the process that holds the probes has ended")
