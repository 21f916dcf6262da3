"""The code of a target as it is in memory and in the file: where they differ, there is a probe."""

from pathlib import Path

from gilscope.gil.target import Target
from gilscope.process import procfs
from gilscope.process.memory import ProcessMemory

__all__ = ["BREAKPOINT", "byte_in_file", "text_of"]

BREAKPOINT = b"\xcc"
"""What the kernel puts in the place of the first byte of a probed instruction."""


def text_of(target: Target, program: str = "on_wait") -> bytes:
    """Return the first byte of the first site of *program* in the memory of the target."""
    pid, offset = target.build.pid, _offset(target, program)
    (address,) = [
        mapping.start + offset - mapping.offset
        for mapping in procfs.read_maps(pid)
        if mapping.executable
        and mapping.path == target.build.file.mapping.path
        and mapping.offset <= offset < mapping.offset + mapping.end - mapping.start
    ]
    with ProcessMemory(pid) as memory:
        return memory.read(address, 1)


def byte_in_file(target: Target) -> bytes:
    """Return the same byte as the file has it."""
    with Path(target.file.path).open("rb") as file:
        file.seek(_offset(target, "on_wait"))
        return file.read(1)


def _offset(target: Target, program: str) -> int:
    points = (*target.hookpoints, *target.acquires, *target.releases)
    return next(point.offset for point in points if point.program == program)
