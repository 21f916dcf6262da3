"""Opens a process of which a dump is to be taken."""

import contextlib
from collections.abc import Iterator, Mapping

from gilscope.dump.take import Subject
from gilscope.process import procfs
from gilscope.process.memory_reader import MemoryReader
from gilscope.process.reads import ProcessReads
from gilscope.process.view import view_of
from gilscope.runtimes.base import Build, Threads
from gilscope.runtimes.registry import detect, open_memory

__all__ = ["found", "opened"]


@contextlib.contextmanager
def found(pid: int, reader: MemoryReader) -> Iterator[Subject]:
    """Give process *pid*, of which nothing is known yet, read by *reader*; raises as `detect`."""
    with contextlib.ExitStack() as closing:
        memory = closing.enter_context(open_memory(pid))
        # From here on the program is the one whose memory is open.
        view = view_of(pid)
        build = detect(view)
        closing.callback(build.close)
        memory.allow(build.file.mapping)
        reads = ProcessReads(reader, pid, memory)
        runtime = build.instance(memory, reads)
        yield Subject(
            view.name, build, runtime.standing, reads, _roles(pid, runtime.threads, reads)
        )


@contextlib.contextmanager
def opened(
    name: str, build: Build, reader: MemoryReader, roles: Mapping[int, str]
) -> Iterator[Subject]:
    """Give the process that runs *build*, with memory of its own: any thread may use it.

    It is called *name*, and its threads have *roles* as far as these are known.
    """
    with open_memory(build.pid) as memory:
        memory.allow(build.file.mapping)
        reads = ProcessReads(reader, build.pid, memory)
        yield Subject(name, build, build.instance(memory, reads).standing, reads, roles)


def _roles(pid: int, threads: Threads, reads: ProcessReads) -> Mapping[int, str]:
    for tid in procfs.list_tids(pid):
        threads.want(tid)
    reads(threads.read_wanted)
    threads.settle()
    return threads.known
