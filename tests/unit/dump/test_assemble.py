"""What is told of threads, put together."""

from gilscope.arch.x86_64.architecture import X86_64
from gilscope.dump.assemble import Known, dumped_gils, dumped_threads
from gilscope.model.gil import Gil
from gilscope.model.moment.dump import Awaited
from gilscope.model.moment.seen import LockNow, NativeLock, SystemCall, ThreadStack
from gilscope.model.stack import Frame, Stack, StackState
from gilscope.process.threads.activity import ThreadActivity

_FUTEX, _READ = 202, 0
_GIL = LockNow(Gil(0x5000, 0), is_held=True, holder_tid=7, first=0x5000, last=0x5100)
_STACK = Stack((Frame("work", "/srv/app.py", 1, 3),))
_NAMES = X86_64.call_names


def _asleep(number: int, *arguments: int) -> ThreadActivity:
    return ThreadActivity("io", "S", (number, (*arguments, *[0] * (6 - len(arguments)))), (5, 4, 3))


def test_what_threads_wait_for() -> None:
    """
    The GIL is any word inside of it; a lock elsewhere has the owner that it names.
    """
    known = Known(7, _NAMES, owner_of={0x7000: 8}.get, file_of={5: "/srv/data"}.get)
    activities = {
        9: _asleep(_FUTEX, 0x50FC, 0x189),
        8: _asleep(_FUTEX, 0x5100, 0x189),
        7: _asleep(_FUTEX, 0x7000, 0x80),
        6: _asleep(_READ, 5),
        5: ThreadActivity("busy", "R", None, None),
    }
    threads = dumped_threads(known, activities, [], [_GIL])

    assert [5, 6, 7, 8, 9] == [each.tid for each in threads]
    assert [None, None, Awaited.LOCK, Awaited.LOCK, Awaited.GIL] == [
        each.awaited for each in threads
    ]
    assert [NativeLock(0x7000, 8), NativeLock(0x5100)] == [each.lock for each in threads[2:4]]
    assert ["", "read on fd 5 = /srv/data"] == [each.call_words for each in threads[:2]]
    assert "waits for the GIL" == threads[-1].call_words
    assert (5, 4, 3) == (threads[1].cpu_ns, threads[1].run_delay_ns, threads[1].slices)
    (gil,) = dumped_gils([_GIL], threads, {0x5000: 12})
    assert (7, (9,), 12) == (gil.holder_tid, gil.waiting_tids, gil.held_ns)


def test_what_was_read_of_a_thread_that_runs_is_over() -> None:
    """
    It has come back from the call meanwhile.
    """
    running = ThreadActivity("io", "R", (_FUTEX, (0x5000, 0, 0, 0, 0, 0)), None)

    (thread,) = dumped_threads(Known(7, _NAMES), {7: running}, [], [_GIL])

    assert (None, None, "") == (thread.call, thread.awaited, thread.call_words)


def test_a_call_without_a_name() -> None:
    """
    Newer kernels have more of them.
    """
    (thread,) = dumped_threads(Known(7, _NAMES), {7: _asleep(999)}, [], [])

    assert SystemCall("call 999", (0,) * 6) == thread.call


def test_roles() -> None:
    """
    Those that were read, else what the stack says; the main thread is known by its number.
    """
    idle = ThreadActivity("io", "R", None, None)
    stacks = [ThreadStack(8, 1, Stack((), StackState.NO_PYTHON)), ThreadStack(8, 0, _STACK)]
    known = Known(7, _NAMES, roles={9: "serve (web.py:4)"})

    threads = dumped_threads(known, dict.fromkeys((6, 7, 8, 9), idle), stacks, [])

    assert ["no Python code", "MainThread", "work (app.py:1)", "serve (web.py:4)"] == [
        each.role for each in threads
    ]
    assert [None, _STACK] == [threads[0].stack, threads[2].stack]


def test_hostile_names() -> None:
    """
    A thread calls itself what it likes.
    """
    (thread,) = dumped_threads(
        Known(7, _NAMES), {7: ThreadActivity("\x1b[2J\nx", "S", None, None)}, [], []
    )

    assert "[2J x" == thread.name
