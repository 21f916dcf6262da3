"""The first word of static memory that a function loads."""

import pytest

from gilscope.arch.x86_64.static_loads import static_load


@pytest.mark.parametrize(
    ("code", "where"),
    [
        ("488b3d00010000 c3", 0x107),  # mov 0x100(%rip),%rdi
        ("488b05f8ffffff c3", -1),  # mov -8(%rip),%rax
        ("4c8b2510000000 c3", 0x17),  # mov 0x10(%rip),%r12
        ("48833d1000000000 c3", 0x18),  # cmpq $0,0x10(%rip)
        ("f30f1efa 53 4889fb 488b3d00010000 c3", 0x10F),  # endbr64; push; mov; mov
    ],
)
def test_a_word_is_found(code: str, where: int) -> None:
    """
    It is where the instruction's end and its distance lead, from the function's beginning.
    """
    assert 0x5000 + where == static_load(bytes.fromhex(code), 0x5000)


@pytest.mark.parametrize(
    "code",
    [
        "",
        "c3",
        "8b3d00010000 c3",  # 4 bytes
        "488b7f08 c3",  # relative to a register
        "488d3d00010000 c3",  # the address itself
        "488b3d0001",  # cut off
        "06 488b3d00010000",  # no instruction
    ],
)
def test_nothing_else_is_taken_for_one(code: str) -> None:
    """
    Half words, addresses, other memory and what is cut off are none.
    """
    assert static_load(bytes.fromhex(code), 0x5000) is None
