"""The programs are such that older kernels take them, by what those ask and newer ones do not."""

import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from gilscope.bpf.compile.object import from_json
from gilscope.bpf.loader import compile_ahead
from gilscope.bpf.request import Request
from gilscope.gil.probes import program as gil
from gilscope.locks import program as locks
from gilscope.transactions import program as transactions
from kernels.older_checks import atomics_beyond_add, refused_back_edges

_EXIT = struct.pack("<BBhi", 0x95, 0, 0, 0)
_MOVE = struct.pack("<BBhi", 0xB7, 0, 0, 0)


def _jump(offset: int) -> bytes:
    return struct.pack("<BBhi", 0x05, 0, offset, 0)


def _jump_if_equal(offset: int) -> bytes:
    return struct.pack("<BBhi", 0x15, 0, offset, 0)


def _atomic(operation: int) -> bytes:
    return struct.pack("<BBhi", 0xDB, 0, 0, operation)


@pytest.mark.parametrize(
    ("program", "refused"),
    [
        ([_MOVE, _EXIT], []),
        # A loop whose end jumps to its beginning, with a condition and without.
        ([_MOVE, _jump_if_equal(-2), _EXIT], []),
        ([_MOVE, _jump_if_equal(1), _jump(-3), _EXIT], []),
        # One whose last part stands before its beginning, and runs on into it.
        ([_jump(1), _MOVE, _jump_if_equal(-2), _EXIT], [(1, 2)]),
        # The same, where it ends with a jump.
        ([_jump(2), _MOVE, _jump(0), _jump_if_equal(-3), _EXIT], []),
    ],
)
def test_back_edges(program: list[bytes], refused: list[tuple[int, int]]) -> None:
    """
    A loop may be returned to by a jump alone.
    """
    assert refused == refused_back_edges(b"".join(program))


def test_atomics() -> None:
    """
    An addition has always been there; with its old value (1), and an "or" (0x40), have not.
    """
    program = b"".join(_atomic(operation) for operation in (0, 0x01, 0x40, 0xE1))

    assert [1, 2, 3] == atomics_beyond_add(program + _EXIT)


@pytest.mark.live
@pytest.mark.beside_others
@pytest.mark.parametrize(
    "whole_request",
    [gil.whole_request, locks.whole_request, transactions.whole_request],
    ids=["gil", "locks", "transactions"],
)
def test_programs_have_none_of_either(whole_request: Callable[[], Request], tmp_path: Path) -> None:
    """
    As `make programs` makes them: what 5.10 takes is seen without it.
    """
    file = compile_ahead(whole_request(), tmp_path)
    programs = from_json(file.read_text().partition("\n")[2]).programs

    assert len(programs) > 5
    assert {} == {name: found for name, code in programs.items() if (found := _refused(code))}


def _refused(code: bytes) -> list[object]:
    return [*atomics_beyond_add(code), *refused_back_edges(code)]
