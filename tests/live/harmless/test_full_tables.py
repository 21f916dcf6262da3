"""What is counted where there is no room, and what is kept of threads that have ended."""

import subprocess
from pathlib import Path

import pytest

from accuracy.truth import exact_counts, started, thread_truths
from gilscope.bpf.probe import Probe
from gilscope.gil.probes.probe import GilProbe
from gilscope.gil.probes.program import Limits, begin_loading
from gilscope.gil.tracing.account import GilAccount
from gilscope.model.histogram import total
from gilscope.model.kinds import Kind
from gilscope.process import procfs
from gilscope.runtimes.cpython.thread_roles import RoleReader
from gilscope.runtimes.site_cache import SiteCache
from support.commands.gilscope import eventually
from support.tracing.bpf_tables import threads_held_of
from support.tracing.observations import thread_of, waits_of
from support.tracing.trace import looked_after, missed_events, observation_of

pytestmark = [pytest.mark.live, pytest.mark.beside_others]

_PYTHON = "/usr/bin/python3.11"


def test_full_table_is_said_and_the_rest_is_right(tmp_path: Path) -> None:
    """
    With room for four threads, four are counted exactly, and the loss of others has its reason.
    """
    with GilProbe(begin_loading(limits=Limits(threads=4))) as probe:
        tracer = GilAccount(probe, SiteCache(tmp_path))
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
        tracer = GilAccount(probe, SiteCache(tmp_path))
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


def test_process_that_fills_its_share_of_a_table_leaves_room_for_others(tmp_path: Path) -> None:
    """
    Of forty threads eight are counted, the rest is lost with its reason; a later process is exact.
    """
    limits = Limits(threads=20, threads_of_process=8)
    with GilProbe(begin_loading(limits=limits)) as probe:
        tracer = GilAccount(probe, SiteCache(tmp_path))
        with (
            started([_PYTHON], "many_threads.py", "--threads", "40", "--waiters", "30") as hostile,
            started([_PYTHON], "exact_count.py") as victim,
        ):
            for workload in (hostile, victim):
                tracer.attach(workload.pid)
            with looked_after(tracer):
                answer = hostile.run()
                truth = exact_counts(victim.run())
            filled = observation_of(tracer, hostile.pid)
            counted = observation_of(tracer, victim.pid)
        tracer.close()
    waiters = {thread.tid for thread in thread_truths(answer) if thread.name == "waiter"}

    assert 8 == len(filled.totals.threads)
    assert {"quota"} == set(missed_events(filled))
    assert {3} == {
        thread.lost[Kind.BLOCKING_CALL].count + thread.convoy_waits
        for thread in filled.totals.threads
        if thread.tid in waiters
    }
    assert (23, {}) == (thread_of(counted, truth.waiter.tid).waits, missed_events(counted))


def test_what_has_left_a_table_may_come_again(tmp_path: Path) -> None:
    """
    Three hundred short threads where sixteen may be there at a time, as dead ones go: no loss.
    """
    limits = Limits(threads_of_process=16)
    with GilProbe(begin_loading(limits=limits)) as probe:
        tracer = GilAccount(probe, SiteCache(tmp_path))
        command = [_PYTHON, "-c", _SHORT_THREADS_BY_TURNS]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdout.readline()
            tracer.attach(process.pid)
            for _ in range(60):
                process.stdin.write("\n")
                process.stdin.flush()
                process.stdout.readline()
                eventually(lambda: len(procfs.list_tids(process.pid)) == 2)
                observation = observation_of(tracer, process.pid)
            process.kill()
        tracer.close()

    assert {} == missed_events(observation)
    assert len(observation.totals.threads) > limits.threads_of_process


_SHORT_THREADS_BY_TURNS = """\
import sys, threading, time
sys.setswitchinterval(0.0005)
def short():
    for _ in range(3):
        time.sleep(0.0001)
def compute():
    while True:
        sum(range(2000))
threading.Thread(target=compute, daemon=True).start()
print(1, flush=True)
for line in sys.stdin:
    threads = [threading.Thread(target=short) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(2, flush=True)
"""


def test_process_that_cannot_be_looked_after_costs_no_other(
    probe: GilProbe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Whatever fails at one process: it loses its credit, with the reason, and the rest goes on.
    """
    tracer = GilAccount(probe, SiteCache(tmp_path), method="sites")
    read_wanted = RoleReader.read_wanted
    with (
        started([_PYTHON], "exact_count.py") as first,
        started([_PYTHON], "exact_count.py") as second,
    ):

        def fail_for_the_first(reader: RoleReader) -> None:
            if vars(reader)["_pid"] == first.pid:
                raise OSError(7, "Argument list too long")
            read_wanted(reader)

        monkeypatch.setattr(RoleReader, "read_wanted", fail_for_the_first)
        tracer.attach(first.pid)
        tracer.attach(second.pid)
        with looked_after(tracer):
            first.run()
            truth = exact_counts(second.run())
        failed = observation_of(tracer, first.pid)
        counted = observation_of(tracer, second.pid)
        tracer.close()
        for workload in (first, second):
            tracer.drop(workload.pid)

    assert "looking after it failed: OSError(7, 'Argument list too long')" == failed.invalid
    assert ("", 23) == (counted.invalid, thread_of(counted, truth.waiter.tid).waits)


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
            GilAccount(probe, SiteCache(tmp_path)),
            GilAccount(other_probe, SiteCache(tmp_path), keep_threads=False),
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


def test_what_is_forgotten_of_a_process_is_all_of_it_and_nothing_else(probe: GilProbe) -> None:
    """
    In the kernel's own tables, where more than one reading of them is needed: by key and by value.
    """
    edges, threads, blames = (probe.tables[name] for name in ("edges", "threads", "blames"))
    pids = (4_000_001, 4_000_002)
    for pid in pids:
        for number in range(1500):
            key = {"waiter": number, "holder": 1, "tgid": pid, "kind": 0, "generation": 0}
            edges.put(key, {"wait_ns": 1, "stretches": 1})
        threads.put({"value": pid}, {"tgid": pid})
        blames.put({"value": pid}, {"tgid": pid})

    for pid in pids:
        Probe.forget(probe, pid)
        left = pids[pids.index(pid) + 1 :]
        assert set(left) == {key["tgid"] for key, _ in edges.items()} & set(pids)
        assert set(left) == {record["tgid"] for _, record in threads.items()} & set(pids)
        assert set(left) == {record["tgid"] for _, record in blames.items()} & set(pids)
