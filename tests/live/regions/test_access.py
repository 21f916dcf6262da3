"""Who may read what: each process the sums of its own threads, and nobody may write them."""

import mmap
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from gilscope.bpf.syscalls import map_lookup, map_update
from gilscope.gil.abi import REGION_PLACE, REGION_PLACES
from gilscope.gil.probes.probe import GilProbe
from gilscope.regions.listener import RegionListener
from gilscope.regions.places import Places
from gilscope.regions.protocol import ANSWER_SIZE, Word
from gilscope.regions.words import Words

pytestmark = [pytest.mark.live, pytest.mark.beside_others]

_NOBODY = 65534
_WORD_AT = 8
_PLACE_SIZE = REGION_PLACE.layout().size
_KEY = bytes(4)


def _nothing() -> None:
    pass


def _become_nobody() -> None:
    os.setuid(_NOBODY)


def _leave_it_to_a_child() -> None:
    if os.fork():
        os._exit(0)


class _Asked:
    """An agent that answers one child; which processes it traces is for the test to say."""

    def __init__(self, probe: GilProbe, folder: Path) -> None:
        self._probe = probe
        self._path = str(folder / "regions.sock")
        self._traced: Callable[[int], object | None] = lambda _pid: self

    def trace_only(self, pid: int) -> None:
        """Trace *pid* and no other."""
        self._traced = lambda asked: self if asked == pid else None

    def answer(
        self, *, before: Callable[[], None] = _nothing, between: Callable[[], None] = _nothing
    ) -> tuple[int, int]:
        """Return what the child is told, and how many descriptors come with that.

        It does *before* when it has not connected yet, and *between* when it has not been answered.
        """
        places = Places(self._probe.tables, tells_holds=False)
        answers, said = os.pipe()
        with (
            Words(places.room) as words,
            closing(RegionListener(places, words, self._traced)) as listener,
            socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server,
        ):
            server.bind(self._path)
            Path(self._path).chmod(0o777)
            server.listen()
            child = os.fork()
            if child == 0:
                self._ask(said, before, between)
            assert b"r" == os.read(answers, 1)
            connection, _ = server.accept()
            if between is _leave_it_to_a_child:
                os.waitpid(child, 0)
            with connection:
                listener.answer(connection)
            word, count = os.read(answers, 2)
            if between is not _leave_it_to_a_child:
                os.waitpid(child, 0)
        for fd in (answers, said):
            os.close(fd)
        return word, count

    def _ask(self, said: int, before: Callable[[], None], between: Callable[[], None]) -> None:
        try:
            before()
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
                connection.connect(self._path)
                between()
                os.write(said, b"r")
                answer, fds, _, _ = socket.recv_fds(connection, ANSWER_SIZE, 4)
            os.write(said, bytes([answer[_WORD_AT], len(fds)]))
        finally:
            os._exit(0)


@pytest.fixture
def asked(region_probe: GilProbe) -> Iterator[_Asked]:
    """Its folder is one that everybody may look into."""
    with TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield _Asked(region_probe, Path(folder))


def test_process_that_is_traced_is_given_its_own(asked: _Asked) -> None:
    """
    Two descriptors: its places, and the words.
    """
    assert (Word.GIVEN, 2) == asked.answer()


def test_other_users_process_is_given_nothing_of_a_traced_one(asked: _Asked) -> None:
    """
    Anybody may ask, and what is traced is another process.
    """
    asked.trace_only(os.getpid())

    assert (Word.NOT_TRACED, 0) == asked.answer(before=_become_nobody)


def test_who_has_changed_its_user_is_refused(asked: _Asked) -> None:
    """
    What has connected was another user's.
    """
    assert (Word.REFUSED, 0) == asked.answer(between=_become_nobody)


def test_who_has_ended_is_refused(asked: _Asked) -> None:
    """
    Its number may be another process' by now, whoever has the connection.
    """
    assert (Word.REFUSED, 0) == asked.answer(between=_leave_it_to_a_child)


def test_places_can_be_read_and_not_written(region_probe: GilProbe) -> None:
    """
    Neither by a system call nor through a mapping, by nobody: root is refused here.
    """
    places = Places(region_probe.tables, tells_holds=False)
    fd = places.give(os.getpid(), (0, 0))
    try:
        size = REGION_PLACES * _PLACE_SIZE
        with mmap.mmap(fd, size, mmap.MAP_SHARED, mmap.PROT_READ) as seen:
            assert bytes(size) == seen[:]
        assert bytes(_PLACE_SIZE) == map_lookup(fd, _KEY, _PLACE_SIZE)
        with pytest.raises(PermissionError):
            map_update(fd, _KEY, bytes(_PLACE_SIZE))
        with pytest.raises(PermissionError):
            mmap.mmap(fd, size)
    finally:
        places.take(os.getpid())
        os.close(fd)
