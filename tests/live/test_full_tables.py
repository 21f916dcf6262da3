"""What is counted where there is no room, and what is kept of threads that have ended."""

import subprocess
from pathlib import Path

import pytest

from accuracy.truth import exact_counts, started, thread_truths
from gilscope import procfs
from gilscope.gil.probe import GilProbe
from gilscope.gil.request import Limits, begin_loading
from gilscope.gil.site_cache import SiteCache
from gilscope.gil.tracer import Tracer
from gilscope.histogram import total
from gilscope.model import Kind
from live.gilscope_command import eventually
from live.kernel_tables import threads_held_of
from live.observations import thread_of, waits_of
from tracing import looked_after, missed_events, observation_of

pytestmark = pytest.mark.live

_PYTHON = "/usr/bin/python3.11"


def test_full_table_is_said_and_the_rest_is_right(tmp_path: Path) -> None:
    """
    With room for four threads, four are counted exactly, and the loss of others has its reason.
    """
    with GilProbe(begin_loading(limits=Limits(threads=4))) as probe:
        tracer = Tracer(probe, SiteCache(tmp_path))
        with started(
            [_PYTHON], "many_threads.py", "--threads", "40", "--waiters", "30"
        ) as workload:
            tracer.attach(workload.pid)
            with looked_after(tracer):
                answer = workload.run()
            observation = observation_of(tracer, workload.pid)
            workload.finish()
        tracer.close()
    waiters = {thread.tid for thread in thread_truths(answer) if thread.name == "waiter"}
    # Any thread may take one of the four places, the main one or the holder too.
    threads = [thread for thread in observation.totals.threads if thread.tid in waiters]

    assert 4 == len(observation.totals.threads)
    assert {3} == {
        thread.lost[Kind.BLOCKING_CALL].count + thread.convoy_waits for thread in threads
    }
    # Nothing else is wrong with those that did not fit.
    assert {"table_full"} == set(missed_events(observation))
    assert "" == observation.invalid


def test_full_table_of_locks_is_said(tmp_path: Path) -> None:
    """
    A process whose lock finds no room is reported with no waits, and with their loss.
    """
    with GilProbe(begin_loading(limits=Limits(gils=1))) as probe:
        tracer = Tracer(probe, SiteCache(tmp_path))
        with (
            started([_PYTHON], "exact_count.py") as first,
            started([_PYTHON], "exact_count.py") as second,
        ):
            tracer.attach(first.pid)
            tracer.attach(second.pid)
            with looked_after(tracer):
                truth = exact_counts(first.run())
                second.run()
            counted = observation_of(tracer, first.pid)
            lost = observation_of(tracer, second.pid)
        tracer.close()

    assert 23 == thread_of(counted, truth.waiter.tid).waits
    assert {} == missed_events(counted)
    assert 0 == waits_of(lost)
    assert {"table_full"} == set(missed_events(lost))


_SHORT_THREADS = """\
import sys, threading
sys.setswitchinterval(0.0005)
print(1, flush=True)
sys.stdin.readline()
def short():
    for _ in range(20):
        sum(range(20000))
for _ in range(60):
    threads = [threading.Thread(target=short) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
print(2, flush=True)
sys.stdin.readline()
"""


def test_short_lived_threads_leave_their_numbers_and_nothing_else(
    probe: GilProbe, tmp_path: Path
) -> None:
    """
    Three hundred threads in turn: all their waits are kept, one by one or added up by role.
    """
    with GilProbe() as other_probe:
        tracers = (
            Tracer(probe, SiteCache(tmp_path)),
            Tracer(other_probe, SiteCache(tmp_path), keep_threads=False),
        )
        command = [_PYTHON, "-c", _SHORT_THREADS]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdout.readline()
            for tracer in tracers:
                tracer.attach(process.pid)
            with looked_after(tracers[0]), looked_after(tracers[1]):
                process.stdin.write("\n")
                process.stdin.flush()
                process.stdout.readline()
                eventually(lambda: procfs.list_tids(process.pid) == (process.pid,))
            kept, added = (observation_of(tracer, process.pid) for tracer in tracers)
            held = [threads_held_of(tracer.probe, process.pid) for tracer in tracers]
            process.kill()
        for tracer in tracers:
            tracer.close()
            tracer.drop(process.pid)
    short = [thread for thread in kept.totals.threads if thread.tid != process.pid]
    roles = [thread.role for thread in added.totals.threads]

    assert 300 >= len(short) > 100
    assert len(short) == len({thread.tid for thread in short})
    assert {"short (<string>:5)", "unknown"} >= {thread.role for thread in short}
    assert len(roles) == len(set(roles)) <= 3
    assert {"short (<string>:5)", "MainThread"} <= set(roles)
    assert waits_of(kept) == waits_of(added)
    for seen in (kept, added):
        (gil,) = seen.totals.gils
        assert total(gil.waits.values()).count == waits_of(seen)
        assert {} == missed_events(seen)
    # Of three hundred threads the kernel has forgotten all but the one that lives.
    assert [set(), set()] == [tids - {process.pid} for tids in held]
