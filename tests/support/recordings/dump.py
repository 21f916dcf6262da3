"""Dumps that reports are made of."""

from dataclasses import replace
from typing import Final

from gilscope.model.gil import Gil
from gilscope.model.moment.dump import Awaited, Dump, DumpedGil, DumpedThread, Step
from gilscope.model.moment.seen import NativeLock, SystemCall, ThreadStack
from gilscope.model.stack import Frame, Stack

__all__ = ["HOLDER", "LIBRARY", "WAITER", "abba", "held", "stack"]

LIBRARY: Final = Frame("loads", "/usr/lib/python3.11/json/__init__.py", 299, 346)
HOLDER: Final = Stack((LIBRARY, Frame("load", "/srv/app.py", 4, 5)))
WAITER: Final = Stack((Frame("work", "/srv/app.py", 9, 11),))
_COND, _MUTEX = 0x5000, 0x7000


def stack(tid: int, where: Stack) -> tuple[ThreadStack, ...]:
    """Return the stacks of a thread that stands in one interpreter."""
    return (ThreadStack(tid, 0, where),)


def held() -> Dump:
    """Return a process whose main thread reads a file with the GIL, which two others wait for."""
    read = SystemCall("read", (5, 0, 0, 0, 0, 0))
    wait = SystemCall("futex", (_COND, 0x189, 0, 0, 0, 0))
    waiting = DumpedThread(
        8,
        "w-0",
        "work (app.py:9)",
        "S",
        call=wait,
        call_words="waits for the GIL",
        awaited=Awaited.GIL,
        gil_cond=_COND,
        stacks=stack(8, WAITER),
    )
    return Dump(
        pid=7,
        process="app.py",
        python="3.11.2",
        at_ns=1_700_000_000_000_000_000,
        gils=(DumpedGil(Gil(_COND, 0), is_held=True, holder_tid=7, waiting_tids=(8, 9)),),
        threads=(
            DumpedThread(
                7,
                "main",
                "MainThread",
                "S",
                call=read,
                call_words="read on fd 5 = /srv/data",
                cpu_ns=1_500_000_000,
                run_delay_ns=2_000_000,
                slices=12,
                stacks=stack(7, HOLDER),
            ),
            waiting,
            replace(waiting, tid=9, name="w-1", stacks=stack(9, WAITER), waiting_ns=510_000_000),
            DumpedThread(10, "blas", "no Python code", "R"),
        ),
    )


def abba() -> Dump:
    """Return the same, but the main thread waits for a mutex that the second one owns."""
    first, *others = held().threads
    first = replace(
        first,
        call=SystemCall("futex", (_MUTEX, 0x80, 0, 0, 0, 0)),
        call_words="waits for a lock at 0x7000",
        awaited=Awaited.LOCK,
        lock=NativeLock(_MUTEX, 8),
    )
    circle = (Step(7, Awaited.LOCK, _MUTEX), Step(8, Awaited.GIL, _COND))
    return replace(held(), threads=(first, *others), deadlocks=(circle,))
