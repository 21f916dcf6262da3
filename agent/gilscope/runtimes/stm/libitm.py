"""Finds libitm's restart in code that has no name for it: where a commit goes that has failed."""

import re
import struct
from collections.abc import Callable, Iterable

__all__ = ["restart_address"]

# mov esi, 5 (the commit was not valid); mov rdi, any register; call. It never returns, so nothing
# of the function comes behind it.
_FAILED_COMMIT = re.compile(
    rb"\xbe\x05\x00\x00\x00(?:[\x48\x4c]\x89[\xc7\xcf\xd7\xdf\xe7\xef\xf7\xff])\xe8(?P<to>....)\Z",
    re.DOTALL,
)
_DISTANCE = struct.Struct("<i")


def restart_address(
    commits: Iterable[tuple[int, bytes]], *, is_start: Callable[[int], bool]
) -> int | None:
    """Return the virtual address that failed commits call; None unless all agree on one.

    *commits* are the virtual addresses and the code of the functions that commit. *is_start* tells
    whether an instruction starts at an address: what only reads like a call leads nowhere.
    """
    found: set[int | None] = set()
    for vaddr, code in commits:
        call = _FAILED_COMMIT.search(code)
        if call is None or not is_start(vaddr + call.start()):
            return None
        found.add(vaddr + len(code) + _DISTANCE.unpack(call["to"])[0])
    return found.pop() if len(found) == 1 else None
