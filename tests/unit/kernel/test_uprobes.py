"""Probes are put in all or none, and taken out without anybody waiting."""

import errno
import os
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import wait

import pytest

from gilscope import procfs
from gilscope.errors import KernelOrBccMissing, NotPermitted
from gilscope.kernel import syscalls
from gilscope.kernel.uprobes import Hook, Uprobes

_HOOKS = (
    Hook("on_acquire", "/python", 0x10),
    Hook("on_release", "/python", 0x20),
    Hook("on_acquire", "/python", 0x30),
    Hook("on_release", "/library", 0x40),
)
_PROGRAMS = {"on_acquire": 1001, "on_release": 1002}


class _Kernel:
    """Notes what is asked for, and answers with real descriptors."""

    def __init__(self) -> None:
        self.asked: list[tuple[object, ...]] = []
        self.descriptors: list[int] = []
        self.refusal: OSError | None = None
        self.refuses_from = 0
        self.has_process = True

    def open_uprobes(
        self, path: str, offsets: Sequence[int], program: int, pid: int, cookie: int
    ) -> int:
        return self._open(path, tuple(offsets), program, pid, cookie)

    def open_uprobe(self, path: str, offset: int, program: int, pid: int) -> int:
        return self._open(path, offset, program, pid)

    def _open(self, *asked: object) -> int:
        if self.refusal is not None and len(self.asked) >= self.refuses_from:
            raise self.refusal
        self.asked.append(asked)
        self.descriptors.append(os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC))
        return self.descriptors[-1]

    def still_open(self) -> list[int]:
        return [fd for fd in self.descriptors if _is_open(fd)]


def _is_open(fd: int) -> bool:
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> _Kernel:
    """Nothing real is probed."""
    made = _Kernel()
    monkeypatch.setattr(syscalls, "open_uprobes", made.open_uprobes)
    monkeypatch.setattr(syscalls, "open_uprobe", made.open_uprobe)
    monkeypatch.setattr(procfs, "is_alive", lambda _: made.has_process)
    return made


@pytest.fixture
def linked(kernel: _Kernel) -> Iterator[Uprobes]:
    """Where the kernel has links."""
    uprobes = Uprobes(_PROGRAMS, has_links=True)
    yield uprobes
    uprobes.shut_down()
    assert [] == kernel.still_open()


@pytest.fixture
def unlinked(kernel: _Kernel) -> Iterator[Uprobes]:
    """Where it has perf events only."""
    uprobes = Uprobes(_PROGRAMS, has_links=False)
    yield uprobes
    uprobes.shut_down()
    assert [] == kernel.still_open()


def test_one_link_for_each_program_and_file(kernel: _Kernel, linked: Uprobes) -> None:
    """
    All of its places at once, and the number that the program is to know.
    """
    opened = linked.open(4711, _HOOKS, 7)

    assert [
        ("/python", (0x10, 0x30), 1001, 4711, 7),
        ("/python", (0x20,), 1002, 4711, 7),
        ("/library", (0x40,), 1002, 4711, 7),
    ] == kernel.asked
    assert kernel.descriptors == opened
    linked.close(opened)


def test_one_event_for_each_place(kernel: _Kernel, unlinked: Uprobes) -> None:
    """
    Without links each probe has its own descriptor.
    """
    opened = unlinked.open(4711, _HOOKS, 7)

    assert [
        ("/python", 0x10, 1001, 4711),
        ("/python", 0x30, 1001, 4711),
        ("/python", 0x20, 1002, 4711),
        ("/library", 0x40, 1002, 4711),
    ] == kernel.asked
    assert kernel.descriptors == opened
    unlinked.close(opened)


def test_nothing_to_probe_opens_nothing(kernel: _Kernel, linked: Uprobes) -> None:
    """
    No hooks are no error.
    """
    assert [] == linked.open(4711, (), 7)
    assert [] == kernel.asked


@pytest.mark.parametrize("refuses_from", range(4))
def test_when_one_place_is_refused_none_is_probed(
    kernel: _Kernel, unlinked: Uprobes, refuses_from: int
) -> None:
    """
    What was open already is closed, before anybody counts on it.
    """
    kernel.refuses_from = refuses_from
    kernel.refusal = OSError(errno.EINVAL, os.strerror(errno.EINVAL))

    with pytest.raises(KernelOrBccMissing):
        unlinked.open(4711, _HOOKS, 7)
    assert refuses_from == len(kernel.descriptors)


@pytest.mark.parametrize(
    ("number", "expected", "message"),
    [
        (errno.EPERM, NotPermitted, "refused uprobes in process 4711 (Operation not permitted)"),
        (errno.EACCES, NotPermitted, "refused uprobes in process 4711 (Permission denied)"),
        (errno.ESRCH, ProcessLookupError, "No such process"),
        (errno.EINVAL, KernelOrBccMissing, "cannot put uprobes at 0x10, 0x30 of /python: Invalid"),
        (errno.ENOENT, KernelOrBccMissing, "cannot put uprobes at 0x10, 0x30 of /python: No such"),
    ],
)
def test_a_refusal_is_named(
    kernel: _Kernel, linked: Uprobes, number: int, expected: type[Exception], message: str
) -> None:
    """
    By what the kernel said: not permitted, gone, or the places that it would not have.
    """
    kernel.refusal = OSError(number, os.strerror(number))

    with pytest.raises(expected) as refused:
        linked.open(4711, _HOOKS, 7)
    assert message in str(refused.value)


def test_files_of_a_process_that_has_ended(kernel: _Kernel, linked: Uprobes) -> None:
    """
    Its folder below /proc goes with it: a file that is not found there is no fault of the probes.
    """
    kernel.refusal = FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
    kernel.has_process = False

    with pytest.raises(ProcessLookupError):
        linked.open(4711, _HOOKS, 7)


def test_closing_is_not_waited_for(linked: Uprobes, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    However long the kernel takes, several go at a time, and it is said when each is out.
    """
    opened = linked.open(4711, _HOOKS, 7)
    is_let, arrived, really_close = threading.Event(), threading.Semaphore(0), os.close

    def close_slowly(fd: int) -> None:
        arrived.release()
        is_let.wait()
        really_close(fd)

    monkeypatch.setattr(os, "close", close_slowly)
    closing = linked.close(opened)
    try:
        assert all(arrived.acquire(timeout=30) for _ in opened)
        assert not any(each.done() for each in closing)
    finally:
        is_let.set()
    assert set(closing) == wait(closing, timeout=30).done
    assert [] == [fd for fd in opened if _is_open(fd)]
