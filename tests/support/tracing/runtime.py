"""Reads the Python runtime of a process that a test has started."""

from collections.abc import Iterator
from contextlib import contextmanager

from gilscope.elf.image import ElfImage
from gilscope.process.memory import ProcessMemory
from gilscope.process.procfs import read_maps
from gilscope.runtimes.cpython.detect import identify
from gilscope.runtimes.cpython.runtime import Runtime, runtime_of
from support.interpreters.known import Interpreter

__all__ = ["live_runtime"]


@contextmanager
def live_runtime(interpreter: Interpreter, pid: int) -> Iterator[Runtime]:
    """Open the runtime of process *pid*, which runs *interpreter*."""
    image = ElfImage(interpreter.elf.read_bytes())
    inode = interpreter.elf.stat().st_ino
    start = min(each.start for each in read_maps(pid) if each.inode == inode and not each.offset)
    with ProcessMemory(pid) as memory:
        yield runtime_of(memory, identify(image), start - image.segments[0].vaddr)
