"""Gives processes that ask, over a Unix socket, what they read their own waits in."""

import contextlib
import logging
import os
import socket
import stat
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from gilscope.errors import CannotListen
from gilscope.gil.probes.slots import SlotPool
from gilscope.regions.peer import UnknownPeer, known_peer
from gilscope.regions.places import Places
from gilscope.regions.protocol import Answer, Word
from gilscope.regions.words import Words
from gilscope.runtimes.cpython.code.unwind_info import namespace
from gilscope.system.named_thread import named_thread
from gilscope.values import dataclass

__all__ = ["RegionListener", "listening_socket"]

_BACKLOG = 128
_PATIENCE_S = 0.5
_ALL_MAY_CONNECT = 0o666

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Given:
    answer: Answer
    number: int
    """Of its word."""
    places: int
    """A descriptor."""


class RegionListener:
    """What was given to whom. Its methods may be called from several threads."""

    def __init__(
        self, places: Places, words: Words, attached: Callable[[int], object | None]
    ) -> None:
        """Give *places* and *words*. *attached* returns what stands for a traced process."""
        self._places = places
        self._words = words
        self._attached = attached
        self._numbers = SlotPool(places.room)
        self._given: dict[int, _Given] = {}
        self._lock = threading.Lock()
        self._has_closed = False

    def end(self, pid: int) -> None:
        """Say to *pid* that its waits will not be seen any more. To be called before they are."""
        with self._lock:
            self._end(pid)

    def close(self) -> None:
        """Say so to all, and give nothing any more."""
        with self._lock:
            self._has_closed = True
            for pid in tuple(self._given):
                self._end(pid)

    def answer(self, connection: socket.socket) -> None:
        """Answer who has connected, if it is somebody, and what it may have; raises OSError."""
        with contextlib.ExitStack() as held:
            try:
                with known_peer(connection) as pid:
                    answer, places = self._answer(pid)
                    if places is not None:
                        held.callback(os.close, places)
            except UnknownPeer as reason:
                _log.debug("no regions for who has asked: %s", reason)
                answer, places = Answer(Word.REFUSED), None
            fds = [] if places is None else [places, self._words.fileno()]
            socket.send_fds(connection, [answer.pack()], fds)

    def _answer(self, pid: int) -> tuple[Answer, int | None]:
        traced = self._attached(pid)
        if traced is None:
            return Answer(Word.NOT_TRACED), None
        with self._lock:
            if self._has_closed:
                return Answer(Word.NOT_TRACED), None
            given = self._given.get(pid) or self._give(pid)
            if given is None:
                return Answer(Word.NO_ROOM), None
            places = os.dup(given.places)
        if self._attached(pid) is not traced:
            # Whoever has ended it meanwhile may not have found it here yet.
            self.end(pid)
        return given.answer, places

    def _give(self, pid: int) -> _Given | None:
        number = self._numbers.take()
        if number is None:
            return None
        try:
            places = self._places.give(pid, namespace(pid))
        except BaseException:
            self._numbers.give_back(number)
            raise
        words = self._words
        answer = Answer(
            Word.GIVEN,
            words.size,
            words.agent_at,
            words.agent,
            words.place(number),
            words.begin(number),
        )
        given = self._given[pid] = _Given(answer, number, places)
        return given

    def _end(self, pid: int) -> None:
        given = self._given.pop(pid, None)
        if given is not None:
            self._words.end(given.number)
            self._places.take(pid)
            os.close(given.places)
            self._numbers.give_back(given.number)


@contextlib.contextmanager
def listening_socket(path: str, answer: Callable[[socket.socket], None]) -> Iterator[None]:
    """Have who connects to the socket at *path* answered by *answer* until the block has ended.

    In a thread of its own, which waits for nobody. Raises CannotListen.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        _bind(listener, path)
        stopped = threading.Event()
        thread = named_thread("regions", _accept, listener, answer, stopped)
        thread.start()
        try:
            yield
        finally:
            with contextlib.suppress(OSError):
                Path(path).unlink()
            stopped.set()
            # It wakes who waits for a connection.
            listener.shutdown(socket.SHUT_RDWR)
            thread.join(_PATIENCE_S)


def _bind(listener: socket.socket, path: str) -> None:
    try:
        with contextlib.suppress(FileNotFoundError):
            if stat.S_ISSOCK(os.lstat(path).st_mode) and not _answers(path):
                Path(path).unlink()  # left there by an agent that was killed
        listener.bind(path)
        # Each gets what is its own and nothing else.
        Path(path).chmod(_ALL_MAY_CONNECT)
        listener.listen(_BACKLOG)
    except OSError as error:
        raise CannotListen(
            f"cannot listen on {path}: {error.strerror or error}",
            remedy="Choose another path with --regions PATH, in a folder that is there.",
        ) from error


def _answers(path: str) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as other:
        return other.connect_ex(path) == 0


def _accept(
    listener: socket.socket, answer: Callable[[socket.socket], None], stopped: threading.Event
) -> None:
    while not stopped.is_set():
        try:
            connection, _ = listener.accept()
        except OSError as error:
            if not stopped.is_set():
                _log.warning("no process can ask for its waits just now: %s", error)
                stopped.wait(_PATIENCE_S)
            continue
        with connection:
            connection.settimeout(0)
            try:
                answer(connection)
            except OSError as error:
                _log.debug("who has asked for regions was not answered: %s", error)
