"""Reads the interpreters, locks and threads of a running CPython from its memory."""

from collections.abc import Iterator

from gilscope.model.gil import Gil
from gilscope.process.remote_read import (
    LimitExceeded,
    Memory,
    TornRead,
    read_int,
    read_pointer,
    retried,
)
from gilscope.runtimes.cpython.detect import Interpreter
from gilscope.runtimes.cpython.layout import Layout, layout_for
from gilscope.values import dataclass

__all__ = [
    "PythonThread",
    "Runtime",
    "is_gil_off",
    "kernel_thread_id",
    "read_gils",
    "read_interpreters",
    "read_threads",
    "runtime_of",
]


@dataclass(frozen=True, slots=True)
class PythonThread:
    """One PyThreadState of a running process."""

    tstate: int
    """Run-time address."""
    interpreter_id: int
    thread_id: int
    """pthread_self() of the thread: an address with glibc."""
    native_thread_id: int | None
    """Kernel thread id in the process' own pid namespace; None before CPython 3.11."""


_MOST_INTERPRETERS = 256
_MOST_THREADS = 16_384
"""Of all interpreters together. What a process says of itself costs the agent a read for each."""
_LARGEST_INTERPRETER_ID = 1 << 40

_NOT_CREATED = -1
_ENABLED_FOR_GOOD = (1 << 31) - 1
"""Otherwise it is how many imports want it."""

_LARGEST_TID = 1 << 22


@dataclass(frozen=True, slots=True)
class Runtime:
    """One CPython in a running process, and how to read it."""

    memory: Memory
    layout: Layout
    address: int
    """Run-time address of `_PyRuntime`."""
    code_type: int
    """Run-time address of `PyCode_Type`."""


def runtime_of(memory: Memory, interpreter: Interpreter, bias: int) -> Runtime:
    """Return the runtime of *interpreter*, whose file is loaded *bias* above its own addresses.

    Raises what `layout_for` raises.
    """
    return Runtime(
        memory=memory,
        layout=layout_for(interpreter),
        address=bias + interpreter.runtime_vaddr,
        code_type=bias + interpreter.code_type_vaddr,
    )


def read_gils(runtime: Runtime) -> list[Gil]:
    """Return every GIL once, under the lowest id of the interpreters that share it.

    Empty while Python is not initialised. Raises TornRead for what cannot be a GIL.
    """
    return retried(lambda: _gils(runtime))


def read_threads(runtime: Runtime) -> list[PythonThread]:
    """Return the Python threads of all interpreters, newest first; raises TornRead.

    A kernel thread that runs code of several interpreters has an entry for each of them.
    """
    return retried(lambda: list(_threads(runtime)))


def kernel_thread_id(runtime: Runtime, thread: PythonThread) -> int | None:
    """Return the id of *thread* in the pid namespace of its process, None if it cannot be told.

    Before CPython 3.11 it is taken from glibc's thread descriptor.
    """
    if thread.native_thread_id is not None or runtime.layout.native_thread_id is not None:
        return thread.native_thread_id
    pthread, descriptor = runtime.layout.pthread, thread.thread_id
    try:
        itself = descriptor
        if pthread.descriptor_self is not None:
            itself = read_pointer(runtime.memory, descriptor + pthread.descriptor_self)
        tid = read_int(runtime.memory, descriptor + pthread.descriptor_tid, 4)
    except TornRead:
        return None
    return tid if itself == descriptor and 0 < tid <= _LARGEST_TID else None


def is_gil_off(runtime: Runtime) -> bool | None:
    """Return whether no interpreter makes its threads wait for a GIL; raises TornRead.

    Only a free-threaded build may do without one; None: it has not been initialised. While it
    imports an extension module it has one for a moment, which makes no difference here.
    """
    enabled = runtime.layout.gil_struct.enabled
    if enabled is None:
        return False
    gils = read_gils(runtime)
    if not gils:
        return None
    counts = (read_int(runtime.memory, gil.cond + enabled, 4) for gil in gils)
    return all(count != _ENABLED_FOR_GOOD for count in counts)


def _gils(runtime: Runtime) -> list[Gil]:
    owners: dict[int, int] = {}
    for address, interpreter_id in read_interpreters(runtime):
        cond = _cond(runtime, address)
        if cond is not None:
            owners[cond] = min(interpreter_id, owners.get(cond, interpreter_id))
    return sorted(
        (Gil(cond=cond, interpreter_id=owner) for cond, owner in owners.items()),
        key=lambda gil: gil.interpreter_id,
    )


def _cond(runtime: Runtime, interpreter: int) -> int | None:
    layout = runtime.layout
    if layout.gil_in_runtime is not None:
        gil = runtime.address + layout.gil_in_runtime
    else:
        gil = read_pointer(runtime.memory, interpreter + (layout.gil_pointer or 0))
        if not gil:
            return None
    cond = gil + layout.gil_cond
    locked = read_int(runtime.memory, cond + layout.gil_struct.locked, 4)
    if locked == _NOT_CREATED:
        return None
    interval_us = read_int(runtime.memory, cond + layout.gil_struct.interval, 8)
    if locked not in {0, 1} or interval_us <= 0:
        raise TornRead(f"no GIL around {cond:#x}: locked {locked}, interval {interval_us}")
    return cond


def read_interpreters(runtime: Runtime) -> Iterator[tuple[int, int]]:
    """Yield the address and the id of each interpreter, the newest first; raises TornRead."""
    layout = runtime.layout
    head = runtime.address + layout.interpreters_head
    limit = f"more than {_MOST_INTERPRETERS} interpreters"
    addresses = _chain(runtime, head, layout.interpreter_next, _MOST_INTERPRETERS, limit)
    if layout.interpreter_id is None:
        # The newest comes first: the main one, which lasts, is 0.
        newest_first = list(addresses)
        yield from zip(newest_first, reversed(range(len(newest_first))), strict=True)
        return
    for address in addresses:
        interpreter_id = read_int(runtime.memory, address + layout.interpreter_id, 8)
        if not 0 <= interpreter_id <= _LARGEST_INTERPRETER_ID:
            raise TornRead(f"no interpreter at {address:#x}: id {interpreter_id}")
        yield address, interpreter_id


def _threads(runtime: Runtime) -> Iterator[PythonThread]:
    memory, layout = runtime.memory, runtime.layout
    left = _MOST_THREADS
    limit = f"more than {_MOST_THREADS} threads"
    for interpreter, interpreter_id in read_interpreters(runtime):
        head = interpreter + layout.threads_head
        for tstate in _chain(runtime, head, layout.tstate_next, left, limit):
            left -= 1
            if read_pointer(memory, tstate + layout.tstate_interpreter) != interpreter:
                raise TornRead(f"the thread at {tstate:#x} belongs to another interpreter")
            yield PythonThread(
                tstate=tstate,
                interpreter_id=interpreter_id,
                thread_id=read_int(memory, tstate + layout.thread_id, 8),
                native_thread_id=_native_thread_id(runtime, tstate),
            )


def _native_thread_id(runtime: Runtime, tstate: int) -> int | None:
    if runtime.layout.native_thread_id is None:
        return None
    # It stays 0 until the thread itself runs for the first time.
    return read_int(runtime.memory, tstate + runtime.layout.native_thread_id, 8) or None


def _chain(runtime: Runtime, head: int, next_offset: int, most: int, limit: str) -> Iterator[int]:
    seen: set[int] = set()
    address = read_pointer(runtime.memory, head)
    while address:
        if address in seen:
            raise TornRead(f"a list of {len(seen)} entries does not end at {address:#x}")
        if len(seen) == most:
            raise LimitExceeded(f"its memory tells of {limit}")
        seen.add(address)
        yield address
        address = read_pointer(runtime.memory, address + next_offset)
