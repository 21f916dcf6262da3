"""What transactions have lost as collapsed stacks."""

from dataclasses import replace

import pytest

from gilscope.model.gil import Tally
from gilscope.model.session import Session
from gilscope.model.transactions import Library, Method, StmRecording
from gilscope.reports.renderers import RENDERERS
from gilscope.reports.transactions.collapsed import render
from support.recordings.gil import with_edges
from support.recordings.transactions import MS, stm_observation, stm_recording

_LOST = f"aborts;worker {10 * MS}\npauses;STM_WAIT_FREE_SEGMENT {20 * MS}\n"


def _with_threads(*aborted_ms: int) -> StmRecording:
    recording = stm_recording()
    seen = recording.observation
    thread = seen.totals.threads[0]
    threads = tuple(
        replace(thread, tid=tid, name=f"a;{tid}" if tid else "", aborted=Tally(ms * MS, 1))
        for tid, ms in enumerate(aborted_ms)
    )
    return replace(
        recording, observation=replace(seen, totals=replace(seen.totals, threads=threads))
    )


def test_aborts_stand_at_their_threads_and_pauses_at_their_kinds() -> None:
    """
    All threads of one name are one line, in nanoseconds.
    """
    assert _LOST == render(stm_recording())


def test_all_that_aborts_cost_is_there() -> None:
    """
    What no thread's own sum has stands by itself; a name has no level in it.
    """
    lines = render(_with_threads(3, 5)).splitlines()

    assert [
        f"aborts;[threads not told apart] {2 * MS}",
        f"aborts;a:1 {5 * MS}",
        f"aborts;thread 0 {3 * MS}",
    ] == lines[:-1]


@pytest.mark.parametrize("method", [Method.ENTRIES, Method.BEGINS])
def test_what_is_not_seen_has_no_line(method: Method) -> None:
    """
    Without a log neither aborts nor pauses have a time.
    """
    assert "" == render(stm_recording(Library.RPYTHON, method))


def test_several_processes_are_told_apart() -> None:
    """
    Those with a GIL are beside them, below roots of their own.
    """
    other = replace(stm_recording(), observation=stm_observation(pid=4712))
    session = Session(
        2_000 * MS, "contention", (with_edges(),), transactions=(stm_recording(), other)
    )

    lines = str(RENDERERS["collapsed"](session)).splitlines()

    roots = {line.partition(";")[0] for line in lines}
    assert {"holders", "waiters", "aborts", "pauses"} == roots
    assert [f"aborts;app.py, pid {pid};worker {10 * MS}" for pid in (4711, 4712)] == [
        line for line in lines if line.startswith("aborts")
    ]
