"""Opens a process of which a dump is to be taken."""

import contextlib
from collections.abc import Callable, Iterator, Mapping

from gilscope.dump.take import Subject
from gilscope.model.moment.seen import ServedRequest
from gilscope.process import procfs
from gilscope.process.files.thread_variables import VariablePlace, VariableSearch
from gilscope.process.guarded_memory import GuardedMemory
from gilscope.process.memory_reader import MemoryReader
from gilscope.process.published.thread_context import CONTEXT_VARIABLE, read_context
from gilscope.process.reads import ProcessReads
from gilscope.process.remote_read import TornRead
from gilscope.process.view import ProcessView, view_of
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
        roles = _roles(pid, runtime.threads, reads)
        place = _context_place(view, memory, reads)
        yield Subject(
            view.name,
            build,
            runtime.standing,
            reads,
            roles,
            request_of=_requests(memory, place, reads),
        )


@contextlib.contextmanager
def opened(
    name: str,
    build: Build,
    reader: MemoryReader,
    roles: Mapping[int, str],
    context_place: VariablePlace | None = None,
) -> Iterator[Subject]:
    """Give the process that runs *build*, with memory of its own: any thread may use it.

    It is called *name*, and its threads have *roles* as far as these are known; they publish what
    they serve at *context_place*.
    """
    with open_memory(build.pid) as memory:
        memory.allow(build.file.mapping)
        reads = ProcessReads(reader, build.pid, memory)
        standing = build.instance(memory, reads).standing
        request_of = _requests(memory, context_place, reads)
        yield Subject(name, build, standing, reads, roles, request_of=request_of)


def _context_place(
    view: ProcessView, memory: GuardedMemory, reads: ProcessReads
) -> VariablePlace | None:
    search = VariableSearch(CONTEXT_VARIABLE, most_new=len(view.mappings))
    located, _ = search.locate(view.pid, view.mappings)
    # It may be about to be loaded.
    with contextlib.suppress(TornRead):
        return None if located is None else reads(lambda: located.place(memory))
    return None


def _requests(
    memory: GuardedMemory, place: VariablePlace | None, reads: ProcessReads
) -> Callable[[int], ServedRequest | None]:
    if place is None:
        return lambda _: None

    def request_of(descriptor: int) -> ServedRequest | None:
        # A thread that has ended meanwhile serves nothing.
        with contextlib.suppress(TornRead):
            return reads(lambda: read_context(memory, place, descriptor))
        return None

    return request_of


def _roles(pid: int, threads: Threads, reads: ProcessReads) -> Mapping[int, str]:
    for tid in procfs.list_tids(pid):
        threads.want(tid)
    reads(threads.read_wanted)
    threads.settle()
    return threads.known
