"""Which AArch64 instructions are cheap to probe."""

import pytest

from gilscope.arch.aarch64.emulation import (
    distance_to_emulated,
    distance_to_jump,
    instruction_length,
    is_emulated,
)

_MOVE, _LOAD, _STORE = "e00314aa", "110e40f9", "200000f9"
_CALL, _JUMP_IF_EQUAL = "40000094", "00020054"
_COMPARE = "1fb80171"


@pytest.mark.parametrize(
    ("code", "is_cheap"),
    [
        (_CALL, True),  # bl .+0x100
        ("40000014", True),  # b .+0x100
        (_JUMP_IF_EQUAL, True),  # b.eq .+0x40
        ("00020034", True),  # cbz w0, .+0x40
        ("00021836", True),  # tbz w0, #3, .+0x40
        ("c0035fd6", True),  # ret
        ("00013fd6", True),  # blr x8
        ("000000f0", True),  # adrp x0, .+0x3000
        ("a1910030", True),  # adr x1, .+0x1235
        ("ff0b5fd6", False),  # retaa
        ("22081fd7", False),  # braa x1, x2
        (_COMPARE, False),  # cmp w0, #110
        (_MOVE, False),  # mov x0, x20
        ("fd7bbfa9", False),  # stp x29, x30, [sp, #-16]!
        ("1f2003d5", False),  # nop: simulated by newer kernels only
        ("00010058", False),  # ldr x0, .+0x20
        ("400000", False),
        ("", False),
    ],
)
def test_branches_and_addresses_are_simulated(code: str, *, is_cheap: bool) -> None:
    """
    What checks a signed address is not, and what loads a constant is refused.
    """
    assert is_cheap is is_emulated(bytes.fromhex(code))


@pytest.mark.parametrize(
    ("code", "distance"),
    [
        (_CALL, 0),
        (_MOVE + _CALL, 4),
        (_MOVE + _LOAD + _STORE + "200040fd" + "2000679e" + _CALL, 20),  # ldr d0; fmov d0
        (_MOVE, 0),
        (_MOVE + "010000d4" + _CALL, 0),  # svc #0
        (_MOVE + "00010058" + _CALL, 0),  # ldr x0, .+0x20
        (_MOVE + "01000000" + _CALL, 0),  # udf #1
    ],
)
def test_only_simple_instructions_are_stepped_over(code: str, distance: int) -> None:
    """
    Up to a cheap one, if there is one.
    """
    assert distance == distance_to_emulated(bytes.fromhex(code))


@pytest.mark.parametrize(
    ("code", "distance"),
    [
        (_COMPARE + _JUMP_IF_EQUAL, 4),
        ("00020034" + _MOVE, 0),  # cbz w0, .+0x40
        ("3fb80171" + _JUMP_IF_EQUAL, 0),  # cmp w1, #110
        (_COMPARE + _MOVE, 0),
        (_COMPARE, 0),
    ],
)
def test_the_jump_on_a_result_is_found(code: str, distance: int) -> None:
    """
    Behind a comparison; one that compares by itself comes at once.
    """
    assert distance == distance_to_jump(bytes.fromhex(code))


def test_all_instructions_have_one_length() -> None:
    """
    But for what is never to be executed, and what is cut off.
    """
    code = bytes.fromhex(_MOVE + "01000000" + "c0035f")  # mov x0, x20; udf #1; ret

    assert [4, None, None] == [instruction_length(code, position) for position in (0, 4, 8)]
