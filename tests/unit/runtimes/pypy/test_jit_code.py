"""Which functions a piece of the JIT's code is of."""

import pytest

from gilscope.runtimes.pypy.facts import Facts
from gilscope.runtimes.pypy.jit_code import JitCode
from gilscope.runtimes.pypy.layout import Place
from support.words_in_memory import Words

_BSS, _HEAD, _NODE, _TABLE, _CODE = 0x10000, 0x10010, 0x20000, 0x30000, 0x7F0000001000
_SIZE = 100
_ENTRIES = (
    # Function 4 from 0 to 100, in which 8 is inlined from 20 to 40 and 12 in that to 30.
    *(4, 0, 100, 12),
    *(8, 20, 40, 12),
    *(12, 20, 30, 12),
)


def _memory() -> Words:
    words = dict.fromkeys(range(_BSS, _BSS + 256, 8), 0)
    words[_HEAD + 16] = _NODE
    node = dict.fromkeys(range(_NODE, _NODE + 0x60, 8), 0)
    node[_NODE] = _CODE
    node[_NODE + 8] = _NODE + 24
    node[_NODE + 24] = len(_ENTRIES) << 32 | _SIZE
    node[_NODE + 32] = _TABLE
    table = {_TABLE + 8 * at: number for at, number in enumerate(_ENTRIES)}
    return Words({**words, **node, **table})


def _jit() -> JitCode:
    return JitCode(_memory(), Place(Facts({"bss": _BSS, "bss.size": 0x100}), 0))


@pytest.mark.parametrize(
    ("offset", "numbers"),
    [(0, (4,)), (19, (4,)), (20, (12, 8, 4)), (29, (12, 8, 4)), (30, (8, 4)), (99, (4,))],
)
def test_inlined_functions_are_told(offset: int, numbers: tuple[int, ...]) -> None:
    """
    Innermost first, those alone that hold the address.
    """
    assert numbers == _jit().numbers_at(_CODE + offset)


@pytest.mark.parametrize("address", [_CODE - 1, _CODE + _SIZE, 0x1234])
def test_an_address_in_no_piece_has_no_functions(address: int) -> None:
    """
    A thread that runs may have called something else last.
    """
    assert () == _jit().numbers_at(address)
