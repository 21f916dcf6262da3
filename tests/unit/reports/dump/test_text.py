"""A dump for people."""

from dataclasses import replace

from gilscope.model.gil import Edge, Tally
from gilscope.model.kinds import Kind
from gilscope.model.moment.dump import Dump, Trigger
from gilscope.model.stack import Frame, Stack
from gilscope.reports.dump import text
from support.recordings.dump import HOLDER, LIBRARY, WAITER, abba, held, stack

_ESCAPE = "\x1b"


def _lines(dump: Dump) -> list[str]:
    return text.render(dump).splitlines()


def test_the_answer_is_first() -> None:
    """
    Who holds the GIL, what that thread does, and how many wait; threads of one stack are together.
    """
    doing, waiting = "sleeping: read on fd 5 = /srv/data", "2 threads wait for it"
    used = "CPU time 1.5 s, ready without a CPU 2 ms"

    assert [
        "app.py, pid 7, CPython 3.11.2: 4 threads",
        "",
        f"Thread 7 (MainThread, at load (app.py:5)) holds the GIL and is {doing}; {waiting}.",
        "",
        f"Thread 7 MainThread [main]: holds the GIL, {doing} ({used})",
        "    loads (json/__init__.py:346)",
        "  * load (app.py:5)",
        "",
        "Thread 8 work (app.py:9) [w-0]: waits for the GIL",
        "Thread 9 work (app.py:9) [w-1]: waits for the GIL, for 510 ms so far",
        "  * work (app.py:11)",
        "",
        "Thread 10 no Python code [blas]: running",
        "    (no thread of Python)",
        "",
        "* marks frames of the application; the innermost one is first.",
    ] == _lines(held())


def test_a_deadlock() -> None:
    """
    Each side with its place, and what it waits for.
    """
    assert (
        "Deadlock: thread 7 (MainThread, at load (app.py:5)) holds the GIL and waits for a native "
        "lock that thread 8 (work (app.py:9), at work (app.py:11)) holds; thread 8 waits for the "
        "GIL."
    ) == _lines(abba())[2]


def test_a_capture() -> None:
    """
    Why it was taken, for how long the GIL has been held, and who kept it in the time before.
    """
    edges = (
        Edge(Kind.CONVOY, WAITER, HOLDER, Tally(3_000_000_000, 9)),
        Edge(Kind.CONVOY, HOLDER, WAITER, Tally(1_000_000_000, 4)),
    )
    dump = replace(
        held(),
        gils=(replace(held().gils[0], held_ns=505_000_000),),
        trigger=Trigger(9, 510_000_000, 500_000_000),
        pairs=edges,
        pairs_ns=30_000_000_000,
    )
    lines = _lines(dump)

    assert (
        "Taken because thread 9 had waited for the GIL for 510 ms, longer than 500 ms." == lines[1]
    )
    assert "holds the GIL, for 505 ms at the least, and is sleeping" in lines[3]
    assert [
        "Whose code kept the GIL, of 4.000s lost in the last 30.000s",
        "   75 %    3.000s  load (app.py:5)",
        "   25 %    1.000s  work (app.py:11)",
    ] == lines[5:8]


def test_nobody_holds_it() -> None:
    """
    Which is said too, and of each interpreter by itself.
    """
    (gil,) = held().gils
    free = replace(gil, is_held=False, holder_tid=None, waiting_tids=())
    other = replace(free, gil=replace(gil.gil, interpreter_id=3), waiting_tids=(8,))

    assert [
        "Nobody holds the GIL of interpreter 0.",
        "Nobody holds the GIL of interpreter 3; 1 thread waits for it.",
    ] == _lines(replace(held(), gils=(free, other)))[2:4]


def test_hostile_names() -> None:
    """
    Nothing that a program calls itself reaches the terminal as a command.
    """
    frame = Frame(f"{_ESCAPE}[2J", f"/srv/{_ESCAPE}]0;x\x07.py", 1, 2)
    first, *others = held().threads
    stacks = (replace(first.stacks[0], stack=Stack((frame, LIBRARY))),)
    spoilt = replace(first, name=f"{_ESCAPE}c", role=f"{_ESCAPE}[1m", stacks=stacks)
    dump = replace(held(), process=f"{_ESCAPE}[5m", threads=(spoilt, *others))

    assert _ESCAPE not in text.render(dump)
    assert _ESCAPE in text.render(dump, colour=True)


def test_many_threads_with_one_stack() -> None:
    """
    A pool of a hundred is told in a few lines.
    """
    _, one, *_ = held().threads
    pool = tuple(
        replace(one, tid=tid, stacks=stack(tid, WAITER), awaited=None) for tid in range(100, 200)
    )
    lines = _lines(replace(held(), threads=pool, left_out=5))

    assert "and 88 more threads with the same stack" in lines
    assert "5 threads left out: there are too many." in lines
