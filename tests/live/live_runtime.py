"""Reads the Python runtime of a process that a test has started."""

from collections.abc import Iterator
from contextlib import contextmanager

from gilscope.elf import ElfImage
from gilscope.gil.interpreter import identify
from gilscope.gil.runtime import Runtime, runtime_of
from gilscope.procfs import read_maps
from gilscope.procmem import ProcessMemory
from interpreters import Interpreter

__all__ = ["live_runtime"]


@contextmanager
def live_runtime(interpreter: Interpreter, pid: int) -> Iterator[Runtime]:
    """Open the runtime of process *pid*, which runs *interpreter*."""
    image = ElfImage(interpreter.elf.read_bytes())
    inode = interpreter.elf.stat().st_ino
    start = min(each.start for each in read_maps(pid) if each.inode == inode and not each.offset)
    with ProcessMemory(pid) as memory:
        yield runtime_of(memory, identify(image), start - image.load_address)
