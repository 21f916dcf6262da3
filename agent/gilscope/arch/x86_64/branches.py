"""Where to put the probe that sees a call's result."""

from typing import Final

__all__ = ["LOOKAHEAD", "distance_to_jump"]

LOOKAHEAD: Final = 5
"""Bytes behind a call that decide."""

_COMPARE_EAX: Final = b"\x83\xf8"
_ADD_TO_EAX: Final = b"\x83\xc0"
"""To add 1 to it is a comparison with -1."""
_WITH_BYTE: Final = 3
_TEST_EAX: Final = b"\x85\xc0"
_JUMPS: Final = (b"\x74", b"\x75", b"\x0f\x84", b"\x0f\x85")


def distance_to_jump(code: bytes) -> int:
    """Return the bytes from a call's end to a conditional jump on its result, 0 for none.

    *code* is what follows the call. The kernel emulates a jump; the comparison before it would
    have to be single-stepped, which costs twenty times as much.
    """
    for comparison, length in (
        (_COMPARE_EAX, _WITH_BYTE),
        (_ADD_TO_EAX, _WITH_BYTE),
        (_TEST_EAX, len(_TEST_EAX)),
    ):
        if code.startswith(comparison) and code[length:].startswith(_JUMPS):
            return length
    return 0
