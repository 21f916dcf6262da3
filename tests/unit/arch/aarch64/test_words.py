"""AArch64 instructions, told from one another."""

from collections.abc import Callable

import pytest

from gilscope.arch.aarch64.words import (
    add_of,
    adr_of,
    is_authenticated,
    is_branch,
    is_call,
    is_comparison,
    is_conditional_branch,
    is_load_literal,
    load_of,
    page_of,
    signed,
    word_at,
)

_WORDS = {
    "bl .+0x100": "40000094",
    "b .-4": "ffffff17",
    "b.eq .+0x40": "00020054",
    "cbz w0, .+0x40": "00020034",
    "cbnz x19, .-0x40": "13feffb5",
    "tbz w0, #3, .+0x40": "00021836",
    "tbnz x5, #40, .-0x40": "05fe47b7",
    "ret": "c0035fd6",
    "br x17": "20021fd6",
    "blr x8": "00013fd6",
    "retaa": "ff0b5fd6",
    "braa x1, x2": "22081fd7",
    "adrp x0, .+0x3000": "000000f0",
    "adr x1, .+0x1235": "a1910030",
    "add x0, x0, #0x678": "00e01991",
    "add x0, x0, #1, lsl #12": "00044091",
    "add w0, w0, #0x678": "00e01911",
    "ldr x17, [x16, #0x18]": "110e40f9",
    "ldr w8, [x8]": "080140b9",
    "ldr d0, [x1]": "200040fd",
    "ldr x0, .+0x20": "00010058",
    "cmp w0, #110": "1fb80171",
    "cmp x0, #110": "1fb801f1",
    "cmp w1, #110": "3fb80171",
    "mov x0, x20": "e00314aa",
    "stp x29, x30, [sp, #-16]!": "fd7bbfa9",
    "nop": "1f2003d5",
    "svc #0": "010000d4",
}


def _word(code: str) -> int:
    return word_at(bytes.fromhex(code), 0)


def _such(tells: Callable[[int], bool]) -> list[str]:
    return [name for name, code in _WORDS.items() if tells(_word(code))]


def test_conditional_branches_are_told() -> None:
    """
    On flags, on a register, and on a bit of one.
    """
    assert ["b.eq", "cbz", "cbnz", "tbz", "tbnz"] == [
        name.split()[0] for name in _such(is_conditional_branch)
    ]


def test_all_branches_are_told() -> None:
    """
    Direct ones and those to a register, of which some check a signed address.
    """
    found = [name.split()[0] for name in _such(is_branch)]

    assert [
        *("bl", "b", "b.eq", "cbz", "cbnz", "tbz", "tbnz", "ret", "br", "blr", "retaa", "braa"),
    ] == found
    assert ["bl .+0x100"] == _such(is_call)
    assert ["retaa", "braa x1, x2"] == _such(is_authenticated)


def test_a_comparison_of_a_result_and_a_load_of_a_constant_are_told() -> None:
    """
    Other registers and widths are not the result, and other loads not relative.
    """
    assert ["cmp w0, #110"] == _such(is_comparison)
    assert ["ldr x0, .+0x20"] == _such(is_load_literal)


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("000000f0", (0, 0x415000)),  # adrp x0, .+0x3000
        ("f0fffff0", (16, 0x411000)),  # adrp x16, .-0x1000
    ],
)
def test_a_page_is_counted_from_the_page_of_the_instruction(
    code: str, found: tuple[int, int]
) -> None:
    """
    Its own place in its page does not matter.
    """
    assert found == page_of(_word(code), 0x412FFC)
    assert found == page_of(_word(code), 0x412000)


def test_a_near_address_is_counted_from_the_instruction() -> None:
    """
    In bytes, forwards and backwards.
    """
    assert (1, 0x413235) == adr_of(_word("a1910030"), 0x412000)  # adr x1, .+0x1235
    assert (2, 0x411FFD) == adr_of(_word("e2ffff30"), 0x412000)  # adr x2, .-3


def test_operands_are_told() -> None:
    """
    Of additions and loads of 64 bits; others have none here.
    """
    assert [(0, 0, 0x678)] == [each for word in _WORDS.values() if (each := add_of(_word(word)))]
    assert [(17, 16, 0x18)] == [each for word in _WORDS.values() if (each := load_of(_word(word)))]
    assert ["adrp x0, .+0x3000"] == _such(lambda word: page_of(word, 0) is not None)
    assert ["adr x1, .+0x1235"] == _such(lambda word: adr_of(word, 0) is not None)


def test_a_sign_is_the_highest_bit() -> None:
    """
    Bits above do not matter.
    """
    assert [3, -4, -1] == [signed(number, 3) for number in (0b1011, 0b0100, 0b1111)]
