"""The code of a process beside the code of its files: a difference is a breakpoint."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

__all__ = ["changed_bytes"]

_PAGE = 4096


def changed_bytes(pid: int) -> list[str]:
    """Return where executable memory of *pid* differs from the files that it maps.

    All code is compared, not only the places that gilscope means to probe. Nothing is returned of
    a process that has ended, nor of parts of files that are not there any more.
    """
    try:
        lines = Path(f"/proc/{pid}/maps").read_bytes().split(b"\n")
        memory = os.open(f"/proc/{pid}/mem", os.O_RDONLY)
    except OSError:
        return []
    try:
        return [place for line in lines for place in _changed_in(pid, memory, line)]
    finally:
        os.close(memory)


def _changed_in(pid: int, memory: int, line: bytes) -> Iterator[str]:
    fields = line.split(None, 5)
    # The fifth is the inode: memory without one has no file to compare it with.
    if len(fields) < 6 or b"x" not in fields[1] or fields[4] == b"0":
        return
    start, end = (int(part, 16) for part in fields[0].split(b"-"))
    offset = int(fields[2], 16)
    with contextlib.suppress(OSError):
        content = _file_part(pid, start, end, offset)
        seen = os.pread(memory, len(content), start)
        if seen == content:
            return
        name = os.fsdecode(fields[5].rpartition(b"/")[2])
        for page in range(0, min(len(seen), len(content)), _PAGE):
            here, there = seen[page : page + _PAGE], content[page : page + _PAGE]
            if here != there:
                for index, (byte, original) in enumerate(zip(here, there, strict=False)):
                    if byte != original:
                        yield f"{name!r}+{offset + page + index:#x} is {byte:#04x}"


def _file_part(pid: int, start: int, end: int, offset: int) -> bytes:
    descriptor = os.open(f"/proc/{pid}/map_files/{start:x}-{end:x}", os.O_RDONLY)
    try:
        return os.pread(descriptor, end - start, offset)
    finally:
        os.close(descriptor)
