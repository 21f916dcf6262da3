"""Where all threads stand, and who holds the locks."""

from dataclasses import dataclass

import pytest

from gilscope.model.gil import Gil
from gilscope.model.moment.seen import LockNow, ThreadStack
from gilscope.model.stack import Frame, Stack, StackState
from gilscope.process import procfs
from support.gil.python_in_memory import LAYOUTS, PythonInMemory

_PAGE = 4096
_OUTER, _INNER = Frame("serve", "/srv/app.py", 3), Frame("read", "/srv/app.py", 9)


@dataclass
class _Status:
    namespace_pids: tuple[int, ...]


@pytest.fixture(autouse=True)
def _kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the kernel know three threads, which have other numbers in their own pid namespace."""
    tids = {4711: 1, 4712: 2, 4713: 3}
    monkeypatch.setattr(procfs, "list_tids", lambda _pid: tuple(tids))
    monkeypatch.setattr(
        procfs,
        "read_status",
        lambda pid, tid=None: _Status((tid or pid, tids[tid or pid])),
    )


def _code(python: PythonInMemory, frame: Frame) -> int:
    return python.code(frame.function, frame.file, frame.first_line)


def _stack(python: PythonInMemory, *codes: int) -> int:
    """Return the innermost of new frames at the first instruction of each code, outermost first."""
    frame = 0
    for code in codes:
        frame = python.frame(code, frame) if frame else python.first_frame(code)
        if python.layout.instruction_is_pointer:
            begin = code + python.layout.code_bytecode
            python.put_int(frame + python.layout.frame_instruction, begin)
    return frame


def _finished(python: PythonInMemory) -> PythonInMemory:
    """Return *python* with the rest of its last page."""
    python.new(2 * _PAGE)
    return python


def _names(stacks: list[ThreadStack]) -> list[tuple[int, int, list[str], StackState]]:
    return [
        (
            each.tid,
            each.interpreter_id,
            [frame.function for frame in each.stack.frames],
            each.stack.state,
        )
        for each in stacks
    ]


_BY_NUMBER = [version for version in LAYOUTS if LAYOUTS[version].native_thread_id is not None]


@pytest.mark.parametrize("version", _BY_NUMBER)
def test_stacks_of_all_threads(version: str) -> None:
    """
    A thread that runs code of two interpreters has one in each; none is no whole stack.
    """
    python = PythonInMemory(version)
    outer, inner = _code(python, _OUTER), _code(python, _INNER)
    gil = python.gil()
    first = python.interpreter(0, gil=gil)
    second = python.interpreter(1, first, gil=gil)
    idle = python.thread(first, native_thread_id=3)
    python.thread(first, idle, frame=_stack(python, outer, inner), native_thread_id=1)
    python.thread(second, frame=_stack(python, inner), native_thread_id=1)
    standing = _finished(python).instance.standing

    assert [
        (4711, 1, ["read"], StackState.WHOLE),
        (4711, 0, ["read", "serve"], StackState.WHOLE),
        (4713, 0, [], StackState.NO_PYTHON),
    ] == _names(list(standing.stacks(10)))
    assert 1 == len(standing.stacks(1))
    assert {1: 4711, 2: 4712, 3: 4713} == standing.tids_by_own_id()


@pytest.mark.parametrize("version", _BY_NUMBER)
def test_a_stack_that_is_never_whole(version: str) -> None:
    """
    It is marked as torn, and the others are read all the same.
    """
    python = PythonInMemory(version)
    interpreter = python.interpreter(0, gil=python.gil())
    whole = python.thread(
        interpreter, frame=_stack(python, _code(python, _OUTER)), native_thread_id=1
    )
    python.thread(interpreter, whole, frame=python.frame(python.new(64)), native_thread_id=2)
    standing = _finished(python).instance.standing

    assert [ThreadStack(4712, 0, Stack((), StackState.TORN))] == list(standing.stacks(10))[:1]
    assert ["serve"] == [frame.function for frame in standing.stacks(10)[1].stack.frames]


@pytest.mark.parametrize("version", _BY_NUMBER)
@pytest.mark.parametrize("locked", [0, 1])
def test_who_holds_the_lock(version: str, locked: int) -> None:
    """
    By the number that the agent knows; one that is free had a holder before.
    """
    python = PythonInMemory(version)
    gil = python.gil(locked=locked)
    interpreter = python.interpreter(0, gil=gil)
    python.put_int(gil + 8, python.thread(interpreter, native_thread_id=2))
    cond = gil - python.layout.gil_struct.begin

    (lock,) = _finished(python).instance.standing.locks()

    # Behind `cond`: the mutex, another condition variable, and its mutex.
    held, holder = bool(locked), 4712 if locked else None
    assert LockNow(Gil(cond, 0), held, holder, first=cond, last=cond + 2 * (48 + 40)) == lock


@pytest.mark.parametrize("version", _BY_NUMBER)
def test_a_holder_that_has_gone(version: str) -> None:
    """
    The lock is held, and nobody can tell by whom.
    """
    python = PythonInMemory(version)
    gil = python.gil()
    python.interpreter(0, gil=gil)
    python.put_int(gil + 8, python.new(64))

    (lock,) = _finished(python).instance.standing.locks()

    assert (True, None) == (lock.is_held, lock.holder_tid)
