"""The process that holds probes, as far as it can be spoken to without rights: it is a real one."""

import errno
import os
import signal
import socket
from collections.abc import Iterator
from concurrent.futures import wait
from pathlib import Path

import pytest

from gilscope.bpf.uprobes import keeper as keeper_module
from gilscope.bpf.uprobes.keeper import Keeper, Place
from gilscope.errors import KernelOrBccMissing, LimitReached
from gilscope.process import procfs

_PATIENCE_S = 30


@pytest.fixture
def keeper() -> Iterator[Keeper]:
    """One that runs; it has ended when the test has."""
    made = Keeper()
    yield made
    made.end()
    assert not procfs.is_alive(made.pid)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """Probes that no kernel would place: the program is none."""
    file = tmp_path / "python"
    file.write_bytes(b"")
    with file.open("rb") as opened:
        yield Place(opened.fileno(), str(file), [1, 2], os.getpid())


def test_it_has_nothing_of_the_agent_but_the_socket(keeper: Keeper) -> None:
    """
    No terminal, no file and no signal that is meant for the agent reaches it.
    """
    keeper.close([1]).result(_PATIENCE_S)  # it has begun
    folder = Path(f"/proc/{keeper.pid}")
    held = {str(link.readlink()).partition(":")[0] for link in (folder / "fd").iterdir()}

    assert {"/dev/null", "socket", "anon_inode"} == held
    assert keeper.pid == os.getsid(keeper.pid)
    assert "gilscope-keeper" == procfs.read_status(keeper.pid).name
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGTSTP):
        os.kill(keeper.pid, number)
    keeper.close([1]).result(_PATIENCE_S)
    assert not keeper.is_lost


def test_what_the_kernel_refuses_is_told(keeper: Keeper, place: Place) -> None:
    """
    With the number of its error; nothing is open afterwards, and the next request is answered.
    """
    for _ in range(3):
        with pytest.raises(OSError, match=r"^\[Errno") as refused:
            keeper.open(place)
        assert refused.value.errno in {errno.EBADF, errno.EINVAL, errno.EPERM}
    keeper.close([1]).result(_PATIENCE_S)  # what came with the requests is closed after the replies
    assert 6 == len(list(Path(f"/proc/{keeper.pid}/fd").iterdir()))


def test_a_file_that_is_not_there(keeper: Keeper, place: Place) -> None:
    """
    It is the agent that opens it, and that says so.
    """
    Path(place.path).unlink()

    with pytest.raises(FileNotFoundError):
        keeper.open(place)


def test_many_requests_at_once_are_all_answered(keeper: Keeper) -> None:
    """
    Also those that close what is not open.
    """
    closing = [keeper.close([number]) for number in range(5000)]

    assert set(closing) == wait(closing, _PATIENCE_S).done


def test_a_keeper_that_is_lost(place: Place) -> None:
    """
    What was to be closed is closed, and nothing can be opened any more.
    """
    keeper = Keeper()
    os.kill(keeper.pid, signal.SIGSTOP)
    closing = keeper.close([1])
    assert not closing.done()
    os.kill(keeper.pid, signal.SIGKILL)
    closing.result(_PATIENCE_S)

    assert keeper.is_lost
    with pytest.raises(ConnectionResetError):
        keeper.open(place)
    assert keeper.close([1]).done()
    keeper.beat()
    keeper.end()


def test_it_ends_with_the_agent(keeper: Keeper) -> None:
    """
    The end of the socket is enough, however it comes.
    """
    pidfd = os.pidfd_open(keeper.pid)
    keeper._socket.shutdown(socket.SHUT_RDWR)  # noqa: SLF001 - as the agent's death does
    keeper._reader.join(_PATIENCE_S)  # noqa: SLF001 - it waits for the process

    assert keeper.is_lost
    with pytest.raises(ProcessLookupError):
        signal.pidfd_send_signal(pidfd, 0)
    os.close(pidfd)


def test_a_program_that_cannot_be_started(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """
    It is named, with what helps.
    """
    monkeypatch.setattr(keeper_module, "PROGRAM", tmp_path / "_keeper")

    with pytest.raises(KernelOrBccMissing) as refused:
        Keeper()
    assert f"cannot start {tmp_path}/_keeper, which holds the probes: No such" in str(refused.value)
    assert "Install gilscope again" in refused.value.remedy


def test_a_keeper_without_a_timer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """
    It does not begin, since nothing would end it where it is stopped; the limit is named.
    """
    limited = tmp_path / "_keeper"
    limited.write_text(f'#!/bin/sh\nexec prlimit --sigpending=0 "{keeper_module.PROGRAM}"\n')
    limited.chmod(0o755)
    monkeypatch.setattr(keeper_module, "PROGRAM", limited)

    with pytest.raises(LimitReached, match="cannot begin: Resource temporarily") as refused:
        Keeper()
    assert "`ulimit -i`, RLIMIT_SIGPENDING" in refused.value.remedy
