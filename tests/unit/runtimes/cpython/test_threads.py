"""The interpreter's threads and the kernel's, matched."""

from dataclasses import dataclass

import pytest

from gilscope.process import procfs
from gilscope.runtimes.cpython.threads import ThreadFinder
from support.gil.python_in_memory import PythonInMemory

_PID = 4000


@dataclass
class _Status:
    namespace_pids: tuple[int, ...]


class _Kernel:
    """Lists threads, each with its ids from the agent's pid namespace down to its own."""

    def __init__(self, **namespace_pids: tuple[int, ...]) -> None:
        self.ids = {int(tid[1:]): ids for tid, ids in namespace_pids.items()}

    def list_tids(self, pid: int) -> tuple[int, ...]:
        assert _PID == pid
        return tuple(self.ids)

    def read_status(self, pid: int, tid: int | None = None) -> _Status:
        assert _PID == pid
        if tid is not None and not self.ids[tid]:
            raise FileNotFoundError  # it has just ended
        return _Status(self.ids[pid if tid is None else tid])


def _finder(
    monkeypatch: pytest.MonkeyPatch, kernel: _Kernel, *native_thread_ids: int
) -> tuple[ThreadFinder, list[int]]:
    """Return the finder, and the addresses of the thread states."""
    monkeypatch.setattr(procfs, "list_tids", kernel.list_tids)
    monkeypatch.setattr(procfs, "read_status", kernel.read_status)
    python = PythonInMemory("3.11.7")
    python.gil()
    interpreter = python.interpreter(0)
    states: list[int] = []
    for own_id in native_thread_ids:
        following = states[-1] if states else 0
        states.append(python.thread(interpreter, following, native_thread_id=own_id))
    return ThreadFinder(_PID, python.runtime), states


def test_threads_are_found_by_the_kernels_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Both ways; a thread that Python does not know, and one that has ended, are in neither.
    """
    kernel = _Kernel(t4000=(4000,), t4001=(4001,), t4002=(4002,))
    finder, (main, worker, _) = _finder(monkeypatch, kernel, 4000, 4002, 4009)

    assert {4000: main, 4002: worker} == {
        tid: thread.tstate for tid, thread in finder.by_tid().items()
    }
    assert (4000, 4002) == (finder.tid_of(main), finder.tid_of(worker))
    assert finder.tid_of(8) is None


def test_inside_a_pid_namespace_ids_are_translated(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    The interpreter knows the ids of its own namespace, the agent those of its own.
    """
    kernel = _Kernel(t4000=(4000, 20, 1), t4001=(4001, 21, 2), t4002=())
    finder, (main, worker) = _finder(monkeypatch, kernel, 1, 2)

    assert {4000, 4001} == set(finder.by_tid())
    assert (4000, 4001) == (finder.tid_of(main), finder.tid_of(worker))


def test_a_process_that_has_gone_has_no_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Whose state it was cannot be told; asked for all threads, it says why.
    """

    def gone(_: int) -> tuple[int, ...]:
        raise ProcessLookupError

    finder, (main,) = _finder(monkeypatch, _Kernel(t4000=(4000,)), 4000)
    monkeypatch.setattr(procfs, "list_tids", gone)

    assert finder.tid_of(main) is None
    with pytest.raises(ProcessLookupError):
        finder.by_tid()


def test_a_list_that_cannot_be_right_names_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    The process was changing it, or the memory is not what it seems.
    """
    _, (main,) = _finder(monkeypatch, _Kernel(t4000=(4000,)), 4000)
    broken = PythonInMemory("3.11.7")
    broken.gil()
    broken.interpreter(0)
    broken.put_int(broken.runtime.address + broken.layout.interpreters_head, 4097)

    assert ThreadFinder(_PID, broken.runtime).tid_of(main) is None
