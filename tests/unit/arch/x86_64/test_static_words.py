"""Which words of static memory x86-64 code uses, and how."""

import pytest

from gilscope.arch.base import WordAccess, WordUse
from gilscope.arch.x86_64.static_words import word_uses

_DISTANCE = bytes.fromhex("00010000")
_VADDR = 0x5000


@pytest.mark.parametrize(
    ("before", "behind", "access"),
    [
        ("48833d", "00", WordAccess.TEST),  # cmpq $0, word
        ("488b05", "", WordAccess.LOAD),  # mov word, %rax
        ("4c8b25", "", WordAccess.LOAD),  # mov word, %r12
        ("f0488305", "01", WordAccess.ATOMIC_ADD),  # lock addq $1, word
        ("f048ff0d", "", WordAccess.ATOMIC_ADD),  # lock decq word
        ("f0480fc105", "", WordAccess.ATOMIC_ADD),  # lock xadd %rax, word
        ("f0480fb115", "", WordAccess.EXCHANGE),  # lock cmpxchg %rdx, word
    ],
)
def test_a_use_is_found_with_its_word(before: str, behind: str, access: WordAccess) -> None:
    """
    The distance counts from the end of the instruction.
    """
    code = bytes.fromhex(before) + _DISTANCE + bytes.fromhex(behind)
    end = _VADDR + 1 + len(code)

    found = list(word_uses(b"\x90" + code + b"\xc3", _VADDR))

    assert WordUse(access, _VADDR + 1, end, end + 0x100) in found


def test_other_instructions_use_none() -> None:
    """
    An address relative to a register is not static.
    """
    # mov 0x100(%rax), %rax; lock cmpxchg %rdx, (%rdi)
    assert [] == list(word_uses(bytes.fromhex("488b8000010000f0480fb117"), _VADDR))
