"""Programs that are loaded when they are first asked for."""

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from gilscope.bpf.programs import Programs
from gilscope.errors import GilscopeError, KernelOrBccMissing, LimitReached, NotPermitted


def _descriptor() -> int:
    return os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)


def _refused(number: int) -> Callable[[], int]:
    def load() -> int:
        raise OSError(number, os.strerror(number))

    return load


def _open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_one_is_loaded_once_when_it_is_asked_for() -> None:
    """
    Until then it is not among those that are there.
    """
    made: list[int] = []

    def load() -> int:
        made.append(_descriptor())
        return made[-1]

    first = _descriptor()
    programs = Programs({"on_wait": first}, {"on_turn_wait": load})

    assert {"on_wait": first} == programs
    assert programs["on_turn_wait"] == programs["on_turn_wait"]
    assert {"on_wait": first, "on_turn_wait": made[0]} == programs
    assert 1 == len(made)
    programs.close()


def test_all_that_is_left_can_be_loaded() -> None:
    """
    For who tries whether the kernel takes everything.
    """
    programs = Programs({}, {"on_turn_wait": _descriptor, "on_turn_taken": _descriptor})

    programs.load_all()

    assert {"on_turn_wait", "on_turn_taken"} == set(programs)
    programs.close()


def test_closing_gives_up_programs_and_the_maps_of_those_that_were_left() -> None:
    """
    Nothing is loaded afterwards.
    """
    before = _open_descriptors()
    programs = Programs({"on_wait": _descriptor()}, {"on_turn_wait": _descriptor}, [_descriptor()])

    programs.close()

    assert before == _open_descriptors()
    with pytest.raises(KeyError):
        programs["on_turn_wait"]


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (errno.EPERM, NotPermitted),
        (errno.EACCES, KernelOrBccMissing),
        (errno.EINVAL, KernelOrBccMissing),
        (errno.ENOMEM, KernelOrBccMissing),
    ],
)
def test_a_refusal_names_the_program(number: int, expected: type[GilscopeError]) -> None:
    """
    It is asked for again the next time.
    """
    programs = Programs({}, {"walk_turn": _refused(number)})

    for _ in range(2):
        with pytest.raises(expected) as refused:
            programs["walk_turn"]
        assert f"BPF program walk_turn ({os.strerror(number)})" in str(refused.value)


def test_a_low_limit_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    The kernel has not refused the program then.
    """
    monkeypatch.setattr("gilscope.bpf.programs.low_limits", lambda: "RLIMIT_NOFILE is 64")

    with pytest.raises(LimitReached, match="RLIMIT_NOFILE is 64"):
        Programs({}, {"walk_turn": _refused(errno.EMFILE)})["walk_turn"]


def test_what_was_never_asked_of_the_loader_is_no_program() -> None:
    """
    That is a defect of who asks.
    """
    with pytest.raises(KeyError):
        Programs({})["on_wait"]
