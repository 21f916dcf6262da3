"""What every probe does with the processes that it is in, with tables that are dictionaries."""

import errno
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from gilscope.bpf import syscalls
from gilscope.bpf.features import TRACEPOINTS, Features
from gilscope.bpf.loader import Loaded, Loading
from gilscope.bpf.probe import Probe, ProcessTables
from gilscope.bpf.programs import Programs
from gilscope.bpf.uprobes.hooks import Hook
from gilscope.errors import KernelOrBccMissing, NotPermitted
from gilscope.process import procfs

_HOOKS = (Hook("on_wait", "/python", 0x10),)
_PID, _OTHER_PID = 4711, 4712
_TABLES = ProcessTables(
    by_part_of_key=("edges", "lost_events"), by_key=("totals",), by_thread=("threads", "blames")
)


class _Table:
    """Keys and records, as the kernel would have them."""

    def __init__(self) -> None:
        self.held: list[tuple[Mapping[str, int], Mapping[str, int]]] = []

    def put(self, key: Mapping[str, int], record: Mapping[str, int]) -> None:
        self.held.append((key, record))

    def items(self) -> list[tuple[Mapping[str, int], Mapping[str, int]]]:
        return list(self.held)

    def delete(self, key: Mapping[str, int]) -> None:
        self.held = [item for item in self.held if item[0] != key]

    def delete_where(
        self, name: str, value: int, *, in_value: bool = False
    ) -> list[Mapping[str, int]]:
        found = [key for key, record in self.held if (record if in_value else key)[name] == value]
        for key in found:
            self.delete(key)
        return found

    delete_raw = delete

    def close(self) -> None:
        """Is done once by whoever has loaded it."""


class _Loading:
    """Has loaded descriptors of nothing."""

    request = SimpleNamespace(parameters={})

    def __init__(self) -> None:
        self.tables = {name: _Table() for name in ("targets", "edges", "lost_events", "totals")} | {
            name: _Table() for name in _TABLES.by_thread
        }
        self.programs = {name: _descriptor() for name in ("on_wait", *TRACEPOINTS)}

    def finish(self) -> Loaded:
        return Loaded(Programs(self.programs), cast("Any", self.tables), {}, "0.0")


class _Keeper:
    """Holds descriptors of nothing."""

    pid, is_lost, lapses = 4321, False, 0

    def __init__(self) -> None:
        self.held: dict[int, int] = {}
        self.before_closing: Callable[[], object] = bool

    def open(self, _: object) -> int:
        fd = _descriptor()
        self.held[fd] = fd
        return fd

    def close(self, numbers: list[int]) -> Future[None]:
        closed: Future[None] = Future()

        def close() -> None:
            self.before_closing()
            for number in numbers:
                os.close(self.held.pop(number))
            closed.set_result(None)

        threading.Thread(target=close).start()
        return closed

    def end(self) -> None:
        assert {} == self.held


class _OneProbe(Probe):
    """Gives the steps of an attachment their names back."""

    def attach(self, pid: int) -> None:
        self._make_way(pid)
        self._table("targets").put({"value": pid}, {})
        self._put_in_or_forget(pid, _HOOKS, 0)

    def begin(self) -> None:
        self._attach_tracepoints()


def _descriptor(*_: object) -> int:
    return os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC)


def _open_descriptors() -> set[str]:
    folder = Path("/proc/self/fd")
    found = [link.name for link in folder.iterdir()]
    # The one by which the folder was read has gone by now.
    return {name for name in found if (folder / name).exists()}


@pytest.fixture
def loading(monkeypatch: pytest.MonkeyPatch) -> _Loading:
    """Nothing real is probed."""
    monkeypatch.setattr(Probe, "_start_keeper", lambda _: _Keeper())
    monkeypatch.setattr(syscalls, "open_raw_tracepoint", _descriptor)
    monkeypatch.setattr(procfs, "is_alive", lambda _: True)
    return _Loading()


@pytest.fixture
def probe(loading: _Loading) -> Iterator[_OneProbe]:
    """What is loaded, on a kernel with links."""
    with _OneProbe(cast("Loading", loading), Features(uprobe_links=True), _TABLES) as made:
        yield made


def _fill(loading: _Loading) -> None:
    for pid in (_PID, _OTHER_PID):
        tid = 10 * pid
        loading.tables["edges"].put({"waiter": 1, "tgid": pid}, {})
        loading.tables["lost_events"].put({"reason": 1, "tgid": pid}, {})
        loading.tables["totals"].put({"value": pid}, {})
        loading.tables["threads"].put({"value": tid}, {"tgid": pid})
        loading.tables["blames"].put({"value": tid}, {})


def test_of_a_process_that_is_forgotten_nothing_is_left(
    loading: _Loading, probe: _OneProbe
) -> None:
    """
    Whichever way a table says whose its entries are; what is another's stays.
    """
    _fill(loading)
    probe.forget(_PID)

    assert {
        "targets": [],
        "edges": [{"waiter": 1, "tgid": _OTHER_PID}],
        "lost_events": [{"reason": 1, "tgid": _OTHER_PID}],
        "totals": [{"value": _OTHER_PID}],
        "threads": [{"value": 10 * _OTHER_PID}],
        "blames": [{"value": 10 * _OTHER_PID}],
    } == {name: [key for key, _ in table.items()] for name, table in loading.tables.items()}


def test_what_was_counted_outlasts_the_probes(loading: _Loading, probe: _OneProbe) -> None:
    """
    A process that is detached is no target any more, and can still be read.
    """
    probe.attach(_PID)
    _fill(loading)
    probe.detach(_PID)

    assert [] == loading.tables["targets"].items()
    assert 2 == len(loading.tables["threads"].items())


def test_a_process_that_cannot_be_probed_leaves_nothing(
    loading: _Loading, probe: _OneProbe, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    It is no target, and nothing is held open.
    """

    def refuse(*_: object) -> int:
        _fill(loading)
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))

    monkeypatch.setattr(_Keeper, "open", refuse)
    before = _open_descriptors()

    with pytest.raises(KernelOrBccMissing):
        probe.attach(_PID)
    assert [] == loading.tables["targets"].items()
    assert [{"value": _OTHER_PID}] == [key for key, _ in loading.tables["totals"].items()]
    assert before == _open_descriptors()


def test_the_next_attachment_waits_until_the_last_one_is_out(
    loading: _Loading, probe: _OneProbe
) -> None:
    """
    What the probes have counted on their way out is forgotten, not attributed to the next program.
    """
    probe.attach(_PID)
    is_let = threading.Event()

    def close_slowly() -> None:
        is_let.wait()
        _fill(loading)

    keeper = cast("_Keeper", probe._uprobes._keeper)  # noqa: SLF001 - the kernel is not slow at will
    keeper.before_closing = close_slowly
    probe.detach(_PID)
    again = threading.Thread(target=probe.attach, args=[_PID])
    again.start()
    is_let.set()
    again.join()
    keeper.before_closing = bool

    assert [{"value": _OTHER_PID}] == [key for key, _ in loading.tables["totals"].items()]


@pytest.mark.parametrize(
    ("number", "expected", "message"),
    [
        (errno.EPERM, NotPermitted, "refused raw tracepoint sched_process_exit (Operation not"),
        (errno.ENOENT, KernelOrBccMissing, "attach raw tracepoint sched_process_exit: No such"),
    ],
)
def test_a_tracepoint_that_is_refused_is_named(
    probe: _OneProbe,
    monkeypatch: pytest.MonkeyPatch,
    number: int,
    expected: type[Exception],
    message: str,
) -> None:
    """
    With what the kernel said.
    """

    def refuse(*_: object) -> int:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(syscalls, "open_raw_tracepoint", refuse)

    with pytest.raises(expected) as refused:
        probe.begin()
    assert message in str(refused.value)


def test_closing_gives_up_everything(monkeypatch: pytest.MonkeyPatch, loading: _Loading) -> None:
    """
    Programs, tracepoints, and the probes in processes that are still attached.
    """
    held: list[int] = []

    def note(*_: object) -> int:
        held.append(_descriptor())
        return held[-1]

    monkeypatch.setattr(syscalls, "open_raw_tracepoint", note)
    before = _open_descriptors() - {str(fd) for fd in loading.programs.values()}
    with _OneProbe(cast("Loading", loading), Features(uprobe_links=True), _TABLES) as made:
        made.begin()
        made.attach(_PID)
        assert len(TRACEPOINTS) == len(held)
    assert before == _open_descriptors()
