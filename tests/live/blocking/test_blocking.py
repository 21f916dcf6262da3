"""Who kept whom waiting: nothing is lost, nothing counts twice, and nothing runs back."""

import math
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from accuracy.truth import exact_counts, started
from gilscope.bpf.features import Features
from gilscope.gil.probes import blame_maps
from gilscope.gil.probes.probe import GilProbe
from gilscope.gil.probes.program import Limits, begin_loading
from gilscope.gil.tracing.account import GilAccount
from gilscope.model.gil import Edge, GilObservation, Tally
from gilscope.model.histogram import total
from gilscope.model.kinds import Kind
from gilscope.model.stack import Stack, StackState
from gilscope.process import procfs
from gilscope.runtimes.site_cache import SiteCache
from support.commands.gilscope import eventually, gilscope
from support.commands.json_reports import only_process, state_of
from support.interpreters.builds import build
from support.tracing.trace import command_of, looked_after, observation_of

pytestmark = pytest.mark.live

_PYTHON = "/usr/bin/python3.11"
_NO_HOLDER = {"stack_unknown"}
"""A thread that ends still holds the lock, and may be made to yield it, when it is not listed any
more."""
_UNSAMPLED = 3
"""``enum stack_id``: of a wait that was not sampled."""
_DEPTHS = 24
_MANY_DEPTHS = 80
# Each round waits once in every depth of a recursion, behind a thread that never waits itself.
_ROUNDS = """\
import sys, threading, time
on = True
def crunch():
    while on:
        sum(range(2000))
def nest(depth):
    if depth:
        nest(depth - 1)
    else:
        time.sleep(0.0005)
print(1, flush=True)
for line in sys.stdin:
    on = True
    thread = threading.Thread(target=crunch)
    thread.start()
    for _ in range(int(line)):
        for depth in range(int(sys.argv[1])):
            nest(depth)
    on = False
    thread.join()
    print(2, flush=True)
"""


class _Rounds:
    """A process that waits in a known number of places, as often as it is told to."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.pid = process.pid
        self._process = process

    def begin(self, rounds: int) -> None:
        """Let it run."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{rounds}\n")
        self._process.stdin.flush()

    def await_end(self) -> None:
        """Return when it has done so, and nobody waits any more."""
        assert self._process.stdout is not None
        assert "2\n" == self._process.stdout.readline()
        eventually(lambda: procfs.list_tids(self.pid) == (self.pid,))


@contextmanager
def _rounds(depths: int = _DEPTHS) -> Iterator[_Rounds]:
    with subprocess.Popen(
        [_PYTHON, "-c", _ROUNDS, str(depths)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield _Rounds(process)
        finally:
            process.kill()


@contextmanager
def _tracer(folder: Path, limits: Limits, features: Features | None = None) -> Iterator[GilAccount]:
    loading = begin_loading(limits=limits, features=features)
    with GilProbe(loading, features=features) as probe:
        tracer = GilAccount(probe, SiteCache(folder))
        yield tracer
        tracer.close()


def _final(tracer: GilAccount, pid: int) -> GilObservation:
    """Return all that there is of *pid*: the tracer's probes count nothing after it."""
    (seen,) = [each for each in tracer.observe(is_final=True) if each.process.pid == pid]
    return seen


def _lost_by_kind(observation: GilObservation) -> dict[Kind, int]:
    by_kind = dict.fromkeys(Kind, 0)
    for thread in observation.totals.threads:
        for kind, tally in thread.lost.items():
            by_kind[kind] += tally.ns
    return by_kind


def _blamed_by_kind(observation: GilObservation) -> dict[Kind, int]:
    by_kind = dict.fromkeys(Kind, 0)
    for edge in observation.totals.edges:
        by_kind[edge.kind] += edge.lost.ns
    return by_kind


def _names(stack: Stack) -> list[str]:
    return [frame.function for frame in stack.frames]


def _depths(edges: tuple[Edge, ...]) -> set[int]:
    """Return in which depths of the recursion somebody waited."""
    return {
        _names(edge.waiter).count("nest") - 1 for edge in edges if "nest" in _names(edge.waiter)
    }


def _figures(observation: GilObservation) -> dict[tuple[Kind, Stack, Stack], Tally]:
    return {(edge.kind, edge.waiter, edge.holder): edge.lost for edge in observation.totals.edges}


def _ran_back(
    before: dict[tuple[Kind, Stack, Stack], Tally], after: dict[tuple[Kind, Stack, Stack], Tally]
) -> list[tuple[Kind, Stack, Stack]]:
    nothing = Tally()
    return [
        pair
        for pair, lost in before.items()
        if after.get(pair, nothing).ns < lost.ns or after.get(pair, nothing).count < lost.count
    ]


def _look_until(done: Callable[[], bool], tracer: GilAccount, pid: int) -> GilObservation:
    """Look again and again, and assert that no figure runs back; return what was seen last."""
    seen = observation_of(tracer, pid)
    until = time.monotonic() + 60
    while not done():
        assert time.monotonic() < until
        before, seen = seen, observation_of(tracer, pid)
        assert [] == _ran_back(_figures(before), _figures(seen))
        tracer.tick()
    return seen


@pytest.mark.parametrize(
    "features",
    [None, Features(uprobe_links=False), Features(uprobe_links=False, tables_may_grow=False)],
    ids=["now", "perf events", "preallocated"],
)
def test_all_waiting_time_has_somebody_to_blame(features: Features | None, tmp_path: Path) -> None:
    """
    Edges add up to what the threads have lost, to the nanosecond and in each kind.
    """
    # Preallocated tables of full size would take a good part of the machine's memory.
    limits = Limits(threads=256, gils=64, targets=16)
    with _tracer(tmp_path, limits, features) as tracer, _rounds() as rounds:
        tracer.attach(rounds.pid)
        with looked_after(tracer):
            rounds.begin(4)
            rounds.await_end()
        observation = _final(tracer, rounds.pid)

    assert set(range(_DEPTHS)) == _depths(observation.totals.edges)
    assert _lost_by_kind(observation) == _blamed_by_kind(observation)
    assert _NO_HOLDER >= set(observation.totals.lost_events)


@pytest.mark.parametrize("share", [0.0, 0.25, 0.75])
def test_stacks_of_a_share_of_the_waits(share: float, tmp_path: Path) -> None:
    """
    Each wait is drawn at random, and each thread has its role; what is left out is shared out.
    """
    with _tracer(tmp_path, Limits()) as tracer, _rounds() as rounds:
        tracer.attach(rounds.pid)
        tracer.probe.read_stacks_of(rounds.pid, share)
        with looked_after(tracer):
            rounds.begin(8)
            rounds.await_end()
        left_out = sum(
            edge["stretches"]
            for pair, edge in tracer.probe.tables["edges"].items()
            if pair["waiter"] == _UNSAMPLED
        )
        observation = _final(tracer, rounds.pid)
    threads = observation.totals.threads
    waits = sum(thread.waits for thread in threads)
    # Five times the deviation of so many draws.
    tolerance = 5 * math.sqrt(share * (1 - share) * waits)

    assert _lost_by_kind(observation) == _blamed_by_kind(observation)
    assert _DEPTHS * 4 < waits
    assert left_out == pytest.approx((1 - share) * waits, abs=tolerance)
    # But for what rounding leaves; of nothing that was drawn nobody knows anything.
    unnamed_ns = sum(
        edge.lost.ns
        for edge in observation.totals.edges
        if edge.kind is Kind.CONVOY and edge.waiter.state is StackState.UNKNOWN
    )
    if share:
        assert unnamed_ns < 1000
    else:
        assert unnamed_ns == _lost_by_kind(observation)[Kind.CONVOY]
    assert {"MainThread", "crunch"} == {(one.role or "").partition(" ")[0] for one in threads}


def test_looking_often_changes_nothing(tmp_path: Path) -> None:
    """
    Waits that go on at each look count once in the end, and no figure runs back meanwhile.
    """
    with _tracer(tmp_path, Limits()) as tracer, _rounds() as rounds:
        tracer.attach(rounds.pid)
        rounds.begin(3)
        until = time.monotonic() + 1
        _look_until(lambda: time.monotonic() > until, tracer, rounds.pid)
        rounds.await_end()
        observation = _final(tracer, rounds.pid)

    assert _lost_by_kind(observation) == _blamed_by_kind(observation)
    assert _NO_HOLDER >= set(observation.totals.lost_events)


def test_entries_are_taken_over_before_the_table_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    A table for 128 pairs is emptied while waits go on: nothing is lost, and no figure runs back.
    """
    monkeypatch.setattr(blame_maps, "_AT_REST_NS", 100_000_000)
    with _tracer(tmp_path, Limits(edges=128)) as tracer, _rounds() as rounds:
        tracer.attach(rounds.pid)
        with ThreadPoolExecutor() as pool:
            # A wait takes about 5 ms.
            rounds.begin(12)
            before = _look_until(pool.submit(rounds.await_end).done, tracer, rounds.pid)
        held = len(list(tracer.probe.tables["edges"].items()))
        (settings,) = [record for _, record in tracer.probe.tables["settings"].items()]
        after = _final(tracer, rounds.pid)

    assert settings["generation"] >= 3
    assert 0 < held < 128
    assert [] == _ran_back(_figures(before), _figures(after))
    assert _lost_by_kind(after) == _blamed_by_kind(after)
    assert _NO_HOLDER >= set(after.totals.lost_events)


def test_where_pairs_are_too_many_the_holder_is_known(tmp_path: Path) -> None:
    """
    Pairs are as many as waiters times holders; whose code it was is told all the same.
    """
    # More waiters than pairs; the holder's loop has few instructions, of which the eighth for
    # holders alone has room for the first.
    limits = Limits(edges_of_process=64)
    with _tracer(tmp_path, limits) as tracer, _rounds(_MANY_DEPTHS) as rounds:
        tracer.attach(rounds.pid)
        with looked_after(tracer):
            rounds.begin(4)
            rounds.await_end()
        observation = _final(tracer, rounds.pid)
    edges = [edge for edge in observation.totals.edges if edge.kind is Kind.CONVOY]
    named_ns = sum(edge.lost.ns for edge in edges if "crunch" in _names(edge.holder))
    nameless_ns = sum(edge.lost.ns for edge in edges if not edge.waiter.is_known)

    # The main thread is too deep in its recursion for its whole stack, while it runs on.
    may_be_lost = {"quota", "stack_torn", *_NO_HOLDER}
    assert {"quota"} <= set(observation.totals.lost_events) <= may_be_lost
    assert 0 < nameless_ns < named_ns
    assert named_ns >= 0.95 * _lost_by_kind(observation)[Kind.CONVOY]
    assert _lost_by_kind(observation) == _blamed_by_kind(observation)


def test_full_table_of_edges_is_said_and_the_rest_is_right(tmp_path: Path) -> None:
    """
    With room for four pairs, waits are counted as ever, and what has no place has its reason.
    """
    with _tracer(tmp_path, Limits(edges=4)) as tracer, _rounds() as rounds:
        tracer.attach(rounds.pid)
        rounds.begin(1)
        rounds.await_end()
        observation = _final(tracer, rounds.pid)
    (gil,) = observation.totals.gils
    lost_ns, blamed_ns = (
        sum(by_kind(observation).values()) for by_kind in (_lost_by_kind, _blamed_by_kind)
    )

    assert {"edge"} == set(observation.totals.lost_events) - _NO_HOLDER
    # Two instructions of one line are two entries, and one pair to whoever reads lines.
    assert tracer.probe.table_fill["edges"] == 4 >= len(observation.totals.edges)
    assert 0 < blamed_ns < lost_ns
    assert total(gil.waits.values()).count == sum(
        thread.waits for thread in observation.totals.threads
    )
    assert "" == observation.invalid


def test_full_ring_of_stacks_is_made_up_for(tmp_path: Path) -> None:
    """
    Stacks that found no room are sent when they are met again, and named in the end.
    """
    with _tracer(tmp_path, Limits(stack_pages=1)) as tracer, _rounds() as rounds:
        tracer.attach(rounds.pid)
        # One page has room for a few stacks, and nobody takes them.
        rounds.begin(1)
        rounds.await_end()
        with looked_after(tracer):
            rounds.begin(4)
            rounds.await_end()
        observation = _final(tracer, rounds.pid)
    # Where somebody waits only once, as in a thread's first instant, nothing is met again.
    unknown = sum(
        edge.lost.count
        for edge in observation.totals.edges
        if edge.kind is not Kind.PREEMPTION and not edge.waiter.frames
    )

    assert {"stack_unsent"} == set(observation.totals.lost_events) - _NO_HOLDER
    assert _DEPTHS // 2 <= observation.totals.lost_events["stack_unsent"]
    assert set(range(_DEPTHS)) == _depths(observation.totals.edges)
    assert unknown < _DEPTHS // 4
    assert _lost_by_kind(observation) == _blamed_by_kind(observation)


def test_holder_that_lets_go_soon_enough_is_no_slow_drop(tmp_path: Path) -> None:
    """
    Only who takes longer than the threshold is noted, though all requests are counted.
    """
    with GilProbe(slow_drop_ns=10_000_000_000) as probe:
        tracer = GilAccount(probe, SiteCache(tmp_path))
        with started([_PYTHON], "exact_count.py") as workload:
            tracer.attach(workload.pid)
            with looked_after(tracer):
                truth = exact_counts(workload.run())
            observation = observation_of(tracer, workload.pid)
        tracer.close()
    (gil,) = observation.totals.gils

    assert truth.drop_requests > 0
    assert truth.drop_requests <= sum(gil.drop_latency.slots)
    assert () == observation.totals.slow_drops


@pytest.mark.parametrize("name", ["pyenv-3.8", "pyenv-3.10", "pyenv-3.13"])
def test_both_ends_in_a_pid_namespace(name: str, tmp_path: Path) -> None:
    """
    Stacks are found though the interpreter knows its threads by other ids than the kernel here.
    """
    mark = uuid.uuid4().hex
    contained = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc")
    command = [*contained, *command_of(build(name)), "-X", mark]
    with (
        _tracer(tmp_path, Limits()) as tracer,
        started(command, "exact_count.py") as workload,
    ):
        (pid,) = [pid for pid in procfs.list_pids() if _is_first_with(mark, pid)]
        tracer.attach(pid)
        with looked_after(tracer):
            truth = exact_counts(workload.run())
        observation = _final(tracer, pid)
    known_ns = sum(
        edge.lost.ns
        for edge in observation.totals.edges
        if "waiter" in _names(edge.waiter) and "holder" in _names(edge.holder)
    )

    assert 1 == workload.pid
    assert known_ns == pytest.approx(truth.waiter.total.wait_ns, rel=0.02)
    assert _lost_by_kind(observation) == _blamed_by_kind(observation)
    assert {} == observation.totals.lost_events


def _is_first_with(mark: str, pid: int) -> bool:
    try:
        line = procfs.read_command_line(pid)
        return mark in line and procfs.read_status(pid).namespace_pids[-1] == 1
    except OSError:
        return False


def test_process_that_replaces_its_program(tmp_path: Path) -> None:
    """
    Nothing that the first program was blamed for counts for the second, whose names are its own.
    """
    command = ("execer.py", "--then", build("pyenv-3.13").argv[0])
    with _tracer(tmp_path, Limits()) as tracer, started([_PYTHON], *command) as workload:
        tracer.attach(workload.pid)
        workload.command()
        replaced = eventually(tracer.tick, within_s=20)
        workload.answer()
        tracer.attach(workload.pid)
        before = observation_of(tracer, workload.pid)
        with looked_after(tracer):
            workload.run()
        after = _final(tracer, workload.pid)
    # A thread that begins waits for the lock before it runs any Python, which is known too.
    unknown_ns = sum(
        edge.lost.ns
        for edge in after.totals.edges
        if StackState.UNKNOWN in (edge.waiter.state, edge.holder.state)
    )

    assert [workload.pid] == replaced
    assert 0 == sum(_lost_by_kind(before).values()) == sum(_blamed_by_kind(before).values())
    assert 0 < sum(_blamed_by_kind(after).values())
    assert _lost_by_kind(after) == _blamed_by_kind(after)
    assert unknown_ns <= 0.01 * sum(_blamed_by_kind(after).values())


_SHORT_COMMAND = """\
import threading, time
until = time.monotonic() + 0.3
def crunch():
    while time.monotonic() < until:
        sum(range(2000))
def nap():
    while time.monotonic() < until:
        time.sleep(0.001)
threads = [threading.Thread(target=function) for function in (crunch, nap)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""


def test_short_command_is_named_to_its_end() -> None:
    """
    Of a command that runs for a third of a second, hardly any time is attributed to nobody.
    """
    outcome = gilscope("record", "--format", "json", "--", _PYTHON, "-c", _SHORT_COMMAND)
    report = only_process(outcome.output)
    blamed_s = sum(edge["wait_s"] for edge in report["edges"])
    unknown_s = sum(
        edge["wait_s"]
        for edge in report["edges"]
        if "unknown" in (state_of(report, edge["waiter"]), state_of(report, edge["holder"]))
    )

    assert 0 == outcome.exit_code
    assert blamed_s == pytest.approx(sum(thread["wait_s"] for thread in report["threads"]))
    assert blamed_s > 0.1
    assert unknown_s <= 0.02 * blamed_s
