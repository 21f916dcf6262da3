"""Branches and loads of addresses in AArch64 code."""

from gilscope.arch.aarch64.search import (
    absolute_loads,
    address_loads,
    calls,
    conditional_jumps,
    is_direct_call,
    jumps,
    slot_branches,
    slot_stubs,
    tail_jump,
)
from gilscope.arch.base import SlotBranch

_VADDR = 0x412000
_FAR = 1 << 31


def _nothing(_matches: int) -> None:
    """Spend it."""


def _code(*words: str) -> memoryview:
    return memoryview(bytes.fromhex("".join(words)))


def test_calls_are_found_with_their_targets() -> None:
    """
    Forwards and backwards; neither jumps nor calls to a register are among them.
    """
    code = _code(
        "1f2003d5",  # nop
        "40000094",  # bl .+0x100
        "40000014",  # b .+0x100
        "feffff97",  # bl .-8
        "00013fd6",  # blr x8
    )

    assert [(4, 0x104), (12, 4)] == list(calls(code, _FAR, _nothing))
    assert [(8, 0x108)] == list(jumps(code, _FAR, _nothing))
    assert [(12, 4)] == list(calls(code, 8, _nothing))


def test_a_direct_call_is_told() -> None:
    """
    A jump is none, and what is cut off is none.
    """
    code = _code("40000094")  # bl .+0x100

    assert is_direct_call(bytes(code))
    assert not is_direct_call(bytes(code[:3]))
    assert not is_direct_call(bytes(_code("40000014")))  # b .+0x100


def test_conditional_jumps_are_found_with_their_targets() -> None:
    """
    Those on a bit have fewer bits for the distance.
    """
    code = _code(
        "00020054",  # b.eq .+0x40
        "13feffb5",  # cbnz x19, .-0x40
        "00021836",  # tbz w0, #3, .+0x40
        "05fe47b7",  # tbnz x5, #40, .-0x40
        "40000014",  # b .+0x100
    )

    found = list(conditional_jumps(code, _FAR, _nothing))

    assert [(0, 0x40), (4, 4 - 0x40), (8, 8 + 0x40), (12, 12 - 0x40)] == found
    assert [] == list(conditional_jumps(code, 0x3F, _nothing))


def test_stubs_are_found_with_their_slots() -> None:
    """
    A stub that may be called by an address begins with a mark.
    """
    code = _code(
        "f0fffff0",  # adrp x16, .-0x1000
        "110e40f9",  # ldr x17, [x16, #0x18]
        "10620091",  # add x16, x16, #0x18
        "20021fd6",  # br x17
        "5f2403d5",  # bti c
        "f0fffff0",  # adrp x16, .-0x1000
        "110e40f9",  # ldr x17, [x16, #0x18]
    )

    assert [(_VADDR, 0x411018), (_VADDR + 16, 0x411018)] == list(slot_stubs(code, _VADDR))
    assert [] == list(slot_stubs(code[20:24], _VADDR))


def test_a_call_of_what_was_loaded_from_a_slot_is_found() -> None:
    """
    Other instructions may be between; another jump, or another value, may not.
    """
    page, load = "100000f0", "080e40f9"  # adrp x16, .+0x3000; ldr x8, [x16, #0x18]
    call, other = "00013fd6", "e00314aa"  # blr x8; mov x0, x20

    through = list(slot_branches(_code(page, other, load, other, call), _VADDR, _nothing))

    assert [SlotBranch(_VADDR + 16, 0x415018, is_call=True)] == through
    jump = _code(page, load, "00011fd6")  # br x8
    assert [SlotBranch(_VADDR + 8, 0x415018, is_call=False)] == list(
        slot_branches(jump, _VADDR, _nothing)
    )
    for code in (
        _code(page, load, "40000094", call),  # bl .+0x100
        _code(page, load, "080140f9", call),  # ldr x8, [x8]
        _code(load, call),
        _code(page, load, *[other] * 8, call),
        _code(page, load, "c0035fd6"),  # ret
    ):
        assert [] == list(slot_branches(code, _VADDR, _nothing))


def test_loads_of_addresses_are_found() -> None:
    """
    Where the second half is added, each time; and where one instruction does.
    """
    code = _code(
        "000000f0",  # adrp x0, .+0x3000
        "e00314aa",  # mov x0, x20: not followed, for it may be on another way
        "03400091",  # add x3, x0, #0x10
        "00e01991",  # add x0, x0, #0x678
        "03400091",  # add x3, x0, #0x10
        "a1910030",  # adr x1, .+0x1235
    )
    addresses = frozenset({0x415010, 0x415678, _VADDR + 20 + 0x1235})

    assert {
        _VADDR + 8: 0x415010,
        _VADDR + 12: 0x415678,
        _VADDR + 20: _VADDR + 20 + 0x1235,
    } == dict(address_loads(code, _VADDR, addresses, _nothing))
    assert [] == list(address_loads(code, _VADDR, frozenset({0x415011}), _nothing))
    assert [] == list(absolute_loads(code, _VADDR, addresses, _nothing))


def test_a_register_with_another_page_is_followed_no_further() -> None:
    """
    What is added to it then is part of another address.
    """
    code = _code(
        "000000f0",  # adrp x0, .+0x3000
        "000000b0",  # adrp x0, .+0x1000
        "00e01991",  # add x0, x0, #0x678
    )

    assert [] == list(address_loads(code, _VADDR, frozenset({0x415678}), _nothing))
    assert [(_VADDR + 8, 0x413678)] == list(
        address_loads(code, _VADDR, frozenset({0x413678}), _nothing)
    )


def test_no_jump_is_shorter_than_the_others() -> None:
    """
    The last instruction of a function is among all jumps.
    """
    assert tail_jump(_code("ffffff17"), 4) is None  # b .-4


def test_all_matches_are_told() -> None:
    """
    A search that finds much is ended by whom it tells.
    """
    spent: list[int] = []

    assert 3000 == len(list(calls(_code("40000094" * 3000), _FAR, spent.append)))
    assert [1024] * 3 == spent
