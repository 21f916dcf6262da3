"""Full mode: holds that go on while somebody looks, and processes that change or end meanwhile."""

import os
import signal
import time
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import pytest

from accuracy.holds_truth import Hold, Witness
from accuracy.truth import Answer, Workload, spoken_to, started
from gilscope.gil.plan import ObservationPlan
from gilscope.gil.probes.probe import GilProbe
from gilscope.gil.target import inspect
from gilscope.gil.tracing.account import GilAccount
from gilscope.model.gil import GilObservation, Tally
from gilscope.model.kinds import Mode
from gilscope.process.view import view_of
from gilscope.runtimes.site_cache import SiteCache
from support.commands.gilscope import eventually
from support.commands.serve import Scrape, serving
from support.interpreters.builds import build
from support.interpreters.known import TIMED_MINORS, Interpreter
from support.tracing.full_mode import (
    assert_adds_up,
    assert_sound,
    held_by,
    holds_of,
    observed_ns,
    tracing,
)
from support.tracing.observations import thread_of
from support.tracing.trace import command_of, looked_after, missed_events, observation_of

pytestmark = pytest.mark.live

_PYTHON = "/usr/bin/python3"
_WITH_OWN_GILS = ("pyenv-3.12", "pyenv-3.13", "debian-3.14", "debian-3.15")
_FOREVER_S = "3600"
_SHARE_TOLERANCE = 0.02
_SECOND_NS = 1_000_000_000
_ENDS_NS = 50_000
"""What may come between an event and the note of it, at each end of a hold."""
_STALL_NS = 20_000_000
"""What may come between them once in a while, where other processes want the CPU too."""


@pytest.fixture
def tracer(probe: GilProbe) -> Iterator[GilAccount]:
    """A tracer in full mode."""
    with tracing(probe) as made:
        yield made


# Holds in flight.


def _hold(workload: Workload, *seconds: str) -> Answer:
    """Let the holder begin to hold; return the line that it says so with."""
    workload.command(f"hold {' '.join(seconds)}")
    return workload.answer()


def _counters(observation: GilObservation) -> dict[str, int]:
    """Return everything that must never fall, by name."""
    found = {"observed": observed_ns(observation)}
    for gil in observation.totals.gils:
        holds = holds_of(gil)
        found[f"held {gil.gil.cond}"] = holds.held_ns
        found[f"holds {gil.gil.cond}"] = holds.finished.count
        found[f"hold sum {gil.gil.cond}"] = holds.finished.sum_ns
    for thread in observation.totals.threads:
        found[f"held by {thread.tid}"] = held_by(thread).ns
        found[f"holds by {thread.tid}"] = held_by(thread).count
    return found


def _assert_runs_forward(before: GilObservation, now: GilObservation) -> None:
    """Assert that no counter falls, and that none gains more time than has passed."""
    passed_ns = now.totals.at_ns - before.totals.at_ns
    values = _counters(now)
    for name, value in _counters(before).items():
        assert value <= values[name], name
    for name, value in values.items():
        if name.startswith(("observed", "held")):
            assert value - _counters(before).get(name, 0) <= passed_ns, name


def _share(before: GilObservation, now: GilObservation) -> float:
    """Return which part of the time between two observations the one lock was held."""
    (had,), (has,) = before.totals.gils, now.totals.gils
    held_ns = holds_of(has).held_ns - holds_of(had).held_ns
    return held_ns / (now.totals.at_ns - before.totals.at_ns)


@pytest.mark.parametrize("interpreter", TIMED_MINORS)
def test_hold_in_flight_counts_up_to_now(interpreter: Interpreter, tracer: GilAccount) -> None:
    """
    Whenever somebody looks, a hold has lasted until then; it counts as one when it is over.
    """
    with started(command_of(interpreter), "hold_long.py") as workload:
        tracer.attach(workload.pid)
        with looked_after(tracer):
            first = _hold(workload, "0.1", "0.4")
            assert workload.answer()["holding"]
            second = observation_of(tracer, workload.pid)
            seen = [second]
            for _ in range(5):
                time.sleep(0.05)
                seen.append(observation_of(tracer, workload.pid))
            result = workload.answer()
            workload.await_rest()
            seen.append(observation_of(tracer, workload.pid))
        workload.finish()
    tid = workload.ready["holder"]
    (from_ns, _), (second_ns, until_ns) = result["holds"]

    assert first["from_ns"] == from_ns
    for before, now in pairwise(seen):
        _assert_runs_forward(before, now)
    for observation in seen[:-1]:
        (gil,) = observation.totals.gils
        holding_ns = observation.totals.at_ns - second_ns
        assert holds_of(gil).holding_ns == pytest.approx(holding_ns, abs=_STALL_NS)
        assert_adds_up(observation)
        held_ns = held_by(thread_of(observation, tid)).ns
        assert held_ns == pytest.approx(observation.totals.at_ns - from_ns, rel=_SHARE_TOLERANCE)
    assert all(
        _share(*two) == pytest.approx(1, abs=_SHARE_TOLERANCE) for two in pairwise(seen[:-1])
    )
    (gil,) = seen[-1].totals.gils
    assert 0 == holds_of(gil).holding_ns
    assert_adds_up(seen[-1])
    assert_sound(seen[-1])
    longest_ns = until_ns - second_ns
    assert 1 == sum(holds_of(gil).finished.octaves()[longest_ns.bit_length() - 1 :])


@pytest.mark.parametrize("interpreter", TIMED_MINORS)
def test_hold_that_was_there_before_counts_from_the_attachment(
    interpreter: Interpreter, tracer: GilAccount, site_cache: SiteCache
) -> None:
    """
    Of a hold that began unseen the time is counted that was seen, and no hold.
    """
    with started(command_of(interpreter), "hold_long.py") as workload:
        # Finding the sites for the first time may take longer than the hold.
        inspect(view_of(workload.pid), site_cache)
        _hold(workload, "1")
        tracer.attach(workload.pid)
        with looked_after(tracer):
            seen = [observation_of(tracer, workload.pid) for _ in range(10)]
            workload.answer()
            workload.await_rest()
            seen.append(observation_of(tracer, workload.pid))
        workload.finish()
    tid = workload.ready["holder"]
    during, after = seen[:-1], seen[-1]

    for before, now in pairwise(seen):
        _assert_runs_forward(before, now)
    for observation in during:
        (gil,) = observation.totals.gils
        assert observed_ns(observation) == holds_of(gil).held_ns
        assert observed_ns(observation) == held_by(thread_of(observation, tid)).ns
        assert 0 == holds_of(gil).finished.count
        assert holds_of(gil).holding_ns >= observed_ns(observation) > 0
    (gil,) = after.totals.gils
    assert_sound(after)
    assert_adds_up(after)
    # What has ended since is not it.
    assert 0 < holds_of(gil).finished.count
    assert holds_of(gil).finished.sum_ns < holds_of(gil).held_ns / 10


def test_hold_that_never_ends_is_seen_until_the_process_does(tracer: GilAccount) -> None:
    """
    Its time counts from look to look, and no further when the process is gone.
    """
    with started([_PYTHON], "hold_long.py") as workload:
        tracer.attach(workload.pid)
        _hold(workload, _FOREVER_S)
        with looked_after(tracer):
            seen = [observation_of(tracer, workload.pid)]
            for _ in range(4):
                time.sleep(0.1)
                seen.append(observation_of(tracer, workload.pid))
            os.kill(workload.pid, signal.SIGKILL)
            eventually(lambda: not tracer.pids)
            seen.append(observation_of(tracer, workload.pid))
            time.sleep(0.1)
            seen.append(observation_of(tracer, workload.pid))
    last, later = seen[-2:]

    for before, now in pairwise(seen):
        _assert_runs_forward(before, now)
    assert all(_share(*two) == pytest.approx(1, abs=_SHARE_TOLERANCE) for two in pairwise(seen[:5]))
    assert _counters(last) == _counters(later)
    for observation in (last, later):
        (gil,) = observation.totals.gils
        assert "" == observation.invalid
        assert observation.ended
        assert 0 == holds_of(gil).holding_ns


@pytest.mark.parametrize("interpreter", TIMED_MINORS)
def test_process_that_exits_in_the_middle_of_a_hold(
    interpreter: Interpreter, tracer: GilAccount, tmp_path: Path
) -> None:
    """
    Its exit code is its own, its last hold counts up to its end, and nothing runs on.
    """
    witness = Witness(tmp_path)
    with started(witness.command(command_of(interpreter)), "hold_long.py") as workload:
        tracer.attach(workload.pid)
        with looked_after(tracer):
            workload.command("exit 7 0.3")
            workload.answer()
            assert 7 == workload.finish()
            ended_ns = time.monotonic_ns()
            eventually(lambda: not tracer.pids)
            first = observation_of(tracer, workload.pid)
            second = observation_of(tracer, workload.pid)
    truth = witness.holds(workload.pid).since(first.since_ns)
    (last,), (gil,) = truth.open, second.totals.gils
    holds = holds_of(gil)
    before_ns = sum(hold.ns for hold in truth.finished)

    assert_sound(second)
    assert_adds_up(second)
    assert _counters(first) == _counters(second)
    assert 0 == holds.holding_ns
    assert len(truth.all) == holds.finished.count
    assert 300_000_000 <= holds.held_ns <= before_ns + ended_ns - last.from_ns + _STALL_NS


def test_hold_and_the_wait_for_it_go_on_together(tracer: GilAccount) -> None:
    """
    While one thread keeps the GIL another waits for it: both are in flight, and then one switch.
    """
    with started([_PYTHON], "long_hold.py", "--seconds", "0.5") as workload:
        tracer.attach(workload.pid)
        with looked_after(tracer):
            workload.command("hold")
            during = eventually(lambda: _with_a_waiter(tracer, workload.pid))[0]
            workload.answer()
            workload.await_rest()
        after = observation_of(tracer, workload.pid)
        workload.finish()
    waiter = thread_of(during, workload.ready["waiter"])
    (gil,) = during.totals.gils
    (later,) = after.totals.gils

    assert_sound(after)
    assert_adds_up(after)
    # The holder wakes the waiter with the lock in its hand.
    assert 0 < waiter.waiting_ns <= holds_of(gil).holding_ns
    assert holds_of(gil).held_ns - holds_of(gil).finished.sum_ns == pytest.approx(
        holds_of(gil).holding_ns, abs=_ENDS_NS
    )
    assert 0 == holds_of(later).holding_ns
    assert holds_of(gil).switch_latency.count < holds_of(later).switch_latency.count
    assert 500_000_000 <= held_by(thread_of(after, workload.ready["holder"])).ns


def _with_a_waiter(tracer: GilAccount, pid: int) -> list[GilObservation]:
    observation = observation_of(tracer, pid)
    waiting = [thread for thread in observation.totals.threads if thread.waiting_ns > 10_000_000]
    return [observation] if waiting else []


def test_libc_method_sees_no_holds_and_says_so(probe: GilProbe, tmp_path: Path) -> None:
    """
    Where the call sites are not known, holds are not zero but unknown.
    """
    plan = ObservationPlan(Mode.FULL)
    tracer = GilAccount(probe, SiteCache(tmp_path / "sites"), method="libc", plan=plan)
    with started([_PYTHON], "exact_count.py") as workload:
        tracer.attach(workload.pid)
        with looked_after(tracer):
            workload.run()
        observation = observation_of(tracer, workload.pid)
        workload.finish()
    tracer.close()
    tracer.drop(workload.pid)
    (gil,) = observation.totals.gils

    assert observation.totals.threads
    assert {None} == {thread.held for thread in observation.totals.threads}
    assert gil.holds is None
    assert observation.totals.observed_ns is None


def _role(scrape: Scrape) -> str:
    (role,) = {
        sample.labels["role"]
        for sample in scrape.samples("gilscope_gil_thread_hold_seconds_total")
        if sample.labels["role"].startswith("Holder.holder (")
    }
    return role


@pytest.mark.slow
def test_served_holds_of_many_seconds_read_one_hundred_percent() -> None:
    """
    Holds of 1, 4 and 15 s, scraped every 5 s, read 100 % each time, and no counter runs back.
    """
    with (
        started([_PYTHON], "hold_long.py") as workload,
        serving("-p", str(workload.pid), "--mode", "full") as service,
    ):
        _hold(workload, "1", "4", "15")
        scrapes = [service.scrape()]
        for number in range(1, 4):
            time.sleep(scrapes[0].after_s + 4.9 * number - time.monotonic())
            scrapes.append(service.scrape())
        while not workload.answer().get("done"):
            pass
        workload.await_rest()
        scrapes.append(service.scrape())
        outcome = service.end()
    pid = str(workload.pid)

    assert 0 == outcome.exit_code
    for before, now in pairwise(scrapes):
        values = now.counters()
        for series, value in before.counters().items():
            assert value <= values[series], series
        # A scrape has its instant between its two ends.
        least_s, most_s = now.before_s - before.after_s, now.after_s - before.before_s
        for name, labels in (
            ("gilscope_gil_held_seconds_total", {"window": "full"}),
            ("gilscope_gil_held_seconds_total", {"window": "all"}),
            ("gilscope_gil_observed_seconds_total", {"window": "full"}),
            ("gilscope_gil_thread_hold_seconds_total", {"role": _role(now)}),
        ):
            gained_s = now.total(name, pid=pid, **labels) - before.total(name, pid=pid, **labels)
            assert gained_s <= most_s, (name, labels)
            if now is not scrapes[-1]:
                assert gained_s >= least_s * (1 - _SHARE_TOLERANCE), (name, labels)
    longest_s = [scrape.total("gilscope_gil_longest_hold_seconds", pid=pid) for scrape in scrapes]
    assert longest_s[0] < 1
    assert longest_s[2] == pytest.approx(scrapes[2].after_s - scrapes[0].after_s - 5, abs=0.5)
    assert longest_s[3] == pytest.approx(scrapes[3].after_s - scrapes[0].after_s - 5, abs=0.5)
    assert 0 == longest_s[4]
    buckets = {
        float(sample.labels["le"]): sample.value
        for sample in scrapes[-1].samples("gilscope_gil_hold_seconds_bucket", pid=pid)
    }
    count = buckets[float("inf")]
    # The bounds are powers of four nanoseconds: 0.27, 1.07, 4.3 and 17.2 s.
    assert [count - 3, count - 2, count - 1, count] == [
        buckets[(1 << slot) / 1e9] for slot in range(28, 35, 2)
    ]


# Threads and processes that come and go.


_SHORT_THREADS = """\
import os, sys, threading
zero = os.open("/dev/zero", os.O_RDONLY)
def read():
    for _ in range(10):
        os.read(zero, 1)
print('{"ready": true, "pid": %d}' % os.getpid(), flush=True)
sys.stdin.readline()
for _ in range(23):
    thread = threading.Thread(target=read)
    thread.start()
    thread.join()
print('{"done": true}', flush=True)
sys.stdin.readline()
"""


@pytest.mark.parametrize("interpreter", TIMED_MINORS)
def test_threads_that_have_ended_keep_their_holds(
    interpreter: Interpreter, tracer: GilAccount, tmp_path: Path
) -> None:
    """
    Of 23 threads that live one after the other each keeps what it held, to the last hold.
    """
    witness = Witness(tmp_path)
    command = witness.command([*command_of(interpreter), "-c", _SHORT_THREADS])
    with spoken_to(command) as workload:
        tracer.attach(workload.pid)
        with looked_after(tracer):
            workload.run()
            workload.await_rest()
        observation = observation_of(tracer, workload.pid)
        truth = witness.holds(workload.pid).since(observation.since_ns)
        workload.finish()
    tids = {hold.tid for hold in truth.finished}

    assert_sound(observation)
    assert_adds_up(observation)
    assert 23 == len(tids - {workload.pid})
    assert tids == {thread.tid for thread in observation.totals.threads}
    for tid in tids:
        _assert_same(truth.of(tid), held_by(thread_of(observation, tid)))
        assert (tid == workload.pid) == thread_of(observation, tid).is_alive


def _assert_same(truth: Sequence[Hold], held: Tally) -> None:
    assert len(truth) == held.count
    assert held.ns == pytest.approx(
        sum(hold.ns for hold in truth), rel=_SHARE_TOLERANCE, abs=_STALL_NS
    )


@pytest.mark.parametrize("name", _WITH_OWN_GILS)
def test_each_interpreter_has_its_own_holds(name: str, tracer: GilAccount, tmp_path: Path) -> None:
    """
    Three locks in one process, two of them made while it is traced: each has the holds on it.
    """
    witness = Witness(tmp_path)
    with started(witness.command(command_of(build(name))), "subinterpreters.py") as workload:
        tracer.attach(workload.pid)
        with looked_after(tracer):
            answer = workload.run()
            workload.await_rest()
        observation = observation_of(tracer, workload.pid)
        truth = witness.holds(workload.pid).since(observation.since_ns)
        workload.finish()
    gils = {gil.gil.interpreter_id: gil for gil in observation.totals.gils}

    assert "" == observation.invalid
    assert {"lock_unknown"} >= set(missed_events(observation))
    assert {0, *(each["interpreter"] for each in answer["interpreters"])} == set(gils)
    assert truth.conds == {gil.gil.cond for gil in gils.values()}
    for gil in gils.values():
        of_lock = [hold for hold in truth.finished if hold.cond == gil.gil.cond]
        holds = holds_of(gil)
        assert len(of_lock) == holds.finished.count
        _assert_same(of_lock, Tally(holds.held_ns, holds.finished.count))
    for each in answer["interpreters"]:
        for thread in each["threads"]:
            tid = thread["tid"]
            _assert_same(truth.of(tid), held_by(thread_of(observation, tid)))
    assert_adds_up(observation)


def test_fork_holds_on_its_own_account(tracer: GilAccount, tmp_path: Path) -> None:
    """
    A child that holds the GIL at the same address adds nothing to its parent's holds.
    """
    witness = Witness(tmp_path)
    with started(witness.command([_PYTHON]), "forker.py") as workload:
        tracer.attach(workload.pid)
        with looked_after(tracer):
            workload.command()
            child_pid = workload.answer()["forked"]
            workload.answer()
            workload.await_rest()
        observation = observation_of(tracer, workload.pid)
        truth = witness.holds(workload.pid).since(observation.since_ns)
        assert 0 == workload.finish()
    (gil,) = observation.totals.gils

    assert_sound(observation)
    assert_adds_up(observation)
    assert len(witness.holds(child_pid).finished) > 20
    assert len(truth.finished) == holds_of(gil).finished.count
    for tid in {hold.tid for hold in truth.finished}:
        _assert_same(truth.of(tid), held_by(thread_of(observation, tid)))


def test_exec_ends_all_holds(tracer: GilAccount, tmp_path: Path) -> None:
    """
    What a process holds as another program counts for nobody; what it held before stays.
    """
    witness = Witness(tmp_path)
    with started(witness.command([_PYTHON]), "execer.py") as workload:
        tracer.attach(workload.pid)
        with looked_after(tracer):
            workload.run()
            assert 2 == workload.answer()["stage"]
            eventually(lambda: not tracer.pids)
            after_exec = observation_of(tracer, workload.pid)
            workload.run()
            after_fight = observation_of(tracer, workload.pid)
        first, second = witness.programs(workload.pid)
        truth = first.since(after_exec.since_ns)
        assert 0 == workload.finish()
    (gil,) = after_exec.totals.gils

    assert "" == after_exec.invalid
    assert {"abandoned", "began_unseen"} >= set(missed_events(after_exec))
    assert _counters(after_exec) == _counters(after_fight)
    assert 0 == holds_of(gil).holding_ns
    # The main thread held it when it became another program: that hold ended there.
    assert {workload.pid} == {hold.tid for hold in truth.open}
    assert 20 < len(truth.all) == holds_of(gil).finished.count
    for tid in {hold.tid for hold in truth.finished} - {workload.pid}:
        _assert_same(truth.of(tid), held_by(thread_of(after_exec, tid)))
    main = held_by(thread_of(after_exec, workload.pid))
    assert len(truth.of(workload.pid)) + 1 == main.count
    assert main.ns < sum(hold.ns for hold in truth.of(workload.pid)) + _SECOND_NS
    assert len(second.finished) > 20
