"""Where x86-64 code decides on whether an atomic exchange has written."""

import pytest

from gilscope.arch.base import Exchange
from gilscope.arch.x86_64.exchanges import exchanges


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("f0480fb113 7505", Exchange(None, 1, 6, 3)),  # lock cmpxchg %rdx,(%rbx); jne
        ("f0480fb113 4889c5 75e2", Exchange(None, 1, 9, 3)),  # and mov %rax,%rbp between
        ("f0480fb117 0f8400010000", Exchange(None, 1, 6, 7)),  # (%rdi); je, far
        # je; lea 1(%rax),%rdx; lock cmpxchg %rdx,(%rdi); jne
        ("7433 488d5001 f0480fb117 75ee", Exchange(1, 7, 12, 7)),
    ],
)
def test_an_exchange_is_found_with_its_jumps(code: str, found: Exchange) -> None:
    """
    With the register that has the address, and what leads there.
    """
    assert [found] == list(exchanges(b"\x90" + bytes.fromhex(code)))


@pytest.mark.parametrize(
    "code",
    [
        "f0480fb115 00000000 7505",  # of a static word
        "f0480fb114 24 7505",  # on the stack
        "f00fb113 7505",  # of 32 bits
        "f0480fb113 85c0 7505",  # the jump is on something else
    ],
)
def test_others_are_not(code: str) -> None:
    """
    Only a decision on an exchange of 64 bits at an address in a register tells of a semaphore.
    """
    assert [] == list(exchanges(bytes.fromhex(code)))


def test_a_jump_that_something_else_follows_is_not_before() -> None:
    """
    The semaphore's register is written between: the jump is not taken for one about it.
    """
    # je; lea 1(%rax),%rdi; lock cmpxchg %rdx,(%rdi); jne
    code = bytes.fromhex("7433 488d7801 f0480fb117 75ee")

    assert [Exchange(None, 6, 11, 7)] == list(exchanges(code))
