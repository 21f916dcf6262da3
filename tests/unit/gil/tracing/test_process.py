"""What is made of one process' figures, and when they are not believed."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from gilscope.bpf.uprobes.hooks import Hook
from gilscope.gil.abi import Loss
from gilscope.gil.probes.window import Window
from gilscope.gil.target import Hookpoint, Target
from gilscope.gil.totals.raw import Holding, RawLock, RawProcess
from gilscope.gil.tracing import process as traced_module
from gilscope.gil.tracing.process import AttachedProcess
from gilscope.model.gil import ENDED_INTERPRETER, Gil, GilObservation, Tally, TracingCost
from gilscope.model.histogram import SLOTS
from gilscope.model.kinds import Kind
from gilscope.process.memory import ProcessMemory
from gilscope.process.reads import DirectReads
from gilscope.runtimes.base import Instance
from support.gil.python_in_memory import PythonInMemory

_NOW_NS = 1_000_000_000_000
_PID = 4711
_COND, _OTHER_COND, _THIRD_COND = 0x1000, 0x2000, 0x3000
_S = 1_000_000_000


def _record(**fields: Any) -> dict[str, Any]:
    zeros = dict.fromkeys(
        ("wait_started_ns", "yield_started_ns", "forced_drop_ns", "interval_ns", "cause"), 0
    )
    more = dict.fromkeys(
        ("drop_requests", "exited_ns", "hold_ns", "holds", "last_hold_began_ns"), 0
    )
    failed = dict.fromkeys(("failed_wakeups", "failed_wakeup_wait_ns", "failed_since_ns"), 0)
    return {**zeros, **more, **failed, "wait_ns": (0,) * 4, "waits": (0,) * 4, **fields}


def _lock(holding: Holding | None = None, held_ns: int = 0, holds: int = 0) -> RawLock:
    record = {
        "held_ns": held_ns,
        "hold_sum_ns": held_ns,
        "hold_slots": (holds,) + (0,) * (SLOTS - 1),
        "switch_sum_ns": 0,
        "switch_slots": (0,) * SLOTS,
    }
    return RawLock(record, holding, {})


class _Runtime:
    """A Python in memory, whose roles are known."""

    def __init__(self, python: PythonInMemory) -> None:
        self.threads = _Roles()
        self.gils = python.instance.gils
        self.is_gil_off = python.instance.is_gil_off
        self.modules_that_need_gil = python.instance.modules_that_need_gil
        self.has_own_gils = python.instance.has_own_gils
        self.lock_parts = python.instance.lock_parts
        self.probe_records = python.instance.probe_records


class _Roles:
    def __init__(self) -> None:
        self.known = {7: "worker", 8: "worker", 9: "other"}
        self.over_limit = ""

    def final(self, tid: int) -> str:
        return self.known.get(tid, "unknown")

    def forget(self, tid: int) -> None:
        self.known.pop(tid, None)


class _Window:
    """Has covered half of the time since the attachment."""

    def __init__(self, *, unknown_takes: int = 0) -> None:
        self.forgotten: list[int] = []
        self._unknown_takes = unknown_takes

    def forget_thread(self, tid: int) -> None:
        self.forgotten.append(tid)

    def unknown_takes(self) -> int:
        return self._unknown_takes

    def observed_ns(self, at_ns: int) -> int:
        return (at_ns - (_NOW_NS - 10 * _S)) // 2


def _traced(python: PythonInMemory | None = None, window: _Window | None = None) -> AttachedProcess:
    """Return a process with one GIL that is known."""
    process = SimpleNamespace(method="sites", python="3.14.2")
    target = SimpleNamespace(
        process=process,
        build=SimpleNamespace(pid=_PID, load_bias=0x400, build_id="b1"),
        file=SimpleNamespace(path="/python"),
        hookpoints=(Hookpoint("on_wait", 0x10), Hookpoint("on_yield", 0x20)),
        sites=None,
    )
    return AttachedProcess(
        pid=_PID,
        target=cast("Target", target),
        memory=cast("ProcessMemory", None),
        runtime=cast("Instance", _Runtime(python or PythonInMemory("3.11.7"))),
        pidfd=-1,
        since_ns=_NOW_NS - 10 * _S,
        gils={_COND: Gil(_COND, 0)},
        window=cast("Window", window),
    )


def _observed(traced: AttachedProcess, raw: RawProcess) -> GilObservation:
    return traced.observation(raw, _NOW_NS, TracingCost(5, 0.01, 2))


# Free-threaded builds.


@pytest.mark.parametrize(("enabled", "is_off"), [(0, True), ((1 << 31) - 1, False)])
def test_attached_before_it_says_whether_it_has_a_gil(enabled: int, *, is_off: bool) -> None:
    """
    Nothing is known before there is a lock; that it has one is asked once.
    """
    python = PythonInMemory("3.14.9t")
    traced = _traced(python)
    traced.reads = DirectReads()
    traced.gils.clear()
    before = (traced.does_without_gil(), traced.is_gil_settled)
    gil = python.gil(enabled=enabled)
    python.interpreter(0, 0, gil)
    traced.refresh_gils()

    assert (False, False) == before
    assert (is_off, not is_off) == (traced.does_without_gil(), traced.is_gil_settled)
    python.put_int(gil - 8, 0, 4)
    assert is_off == traced.does_without_gil()


# Plans.


def test_the_plan_has_the_places_of_the_contended_path() -> None:
    """
    In the file that the agent can open; the main interpreter's lock comes first.
    """
    traced = _traced()
    traced.gils = {_OTHER_COND: Gil(_OTHER_COND, 2), _COND: Gil(_COND, 0)}
    plan = traced.plan()

    assert (Hook("on_wait", "/python", 0x10), Hook("on_yield", "/python", 0x20)) == plan.hooks
    assert ((_COND, _OTHER_COND), 0x400, "b1", ()) == (
        plan.conds,
        plan.load_bias,
        plan.build_id,
        plan.callers,
    )
    assert not plan.waits_only_on_conds
    traced.target.process.method = "libc"  # type: ignore[misc]
    assert traced.plan().waits_only_on_conds


# Trust.


def _unknown_locks(traced: AttachedProcess, *conds: int) -> str:
    return traced.reason_to_distrust(RawProcess(gils={cond: {} for cond in conds}))


def test_figures_of_known_locks_are_believed() -> None:
    """
    Waits on the process' own GIL are what was expected; losses alone are no reason.
    """
    raw = RawProcess(gils={_COND: {}}, lost={Loss.ABANDONED: 7, Loss.LOCK_UNKNOWN: 3})

    assert "" == _traced().reason_to_distrust(raw)


@pytest.mark.parametrize("loss", [Loss.INVALID_MUTEX, Loss.INVALID_LOCKED, Loss.INVALID_INTERVAL])
def test_a_failed_check_is_the_end_of_trust(loss: Loss) -> None:
    """
    Once is enough: what waits there is no GIL.
    """
    expected = f"what the probes saw is not a GIL's ({loss.value})"

    assert expected == _traced().reason_to_distrust(RawProcess(lost={loss: 1}))


@pytest.mark.parametrize(
    ("holds", "intruders", "is_believed"),
    [(0, 3, True), (0, 4, False), (100_000, 103, True), (100_000, 104, False)],
)
def test_a_few_releases_may_be_missed(holds: int, intruders: int, *, is_believed: bool) -> None:
    """
    The kernel leaves out a program now and then; more than one in a thousand is no such chance.
    """
    raw = RawProcess(locks={_COND: _lock(holds=holds)}, lost={Loss.INVALID_HOLDER: intruders})

    assert is_believed is (_traced().reason_to_distrust(raw) == "")


def test_a_stranger_where_there_is_one_gil_is_none() -> None:
    """
    Before 3.12 all interpreters share one lock: waits on another are waits on something else.
    """
    expected = "threads use a lock at 0x2000, but the GIL of this process is at 0x1000"

    assert expected == _unknown_locks(_traced(PythonInMemory("3.11.7")), _COND, _OTHER_COND)


def test_a_lock_that_has_appeared_since_is_learned() -> None:
    """
    The process is asked before a stranger is judged.
    """
    python = PythonInMemory("3.12.1")
    traced, gil = _traced(python), python.gil()
    python.interpreter(3, gil=gil)

    assert "" == _unknown_locks(traced, _COND, gil + 32)
    assert Gil(gil + 32, 3) == traced.gils[gil + 32]
    # It is nothing new any more.
    assert [] == traced.refresh_gils()


def test_an_interpreter_in_the_place_of_one_that_has_ended_keeps_the_name() -> None:
    """
    What was counted never moves to another label.
    """
    python = PythonInMemory("3.12.1")
    traced, gil = _traced(python), python.gil()
    python.interpreter(3, gil=gil)
    assert [gil + 32] == traced.refresh_gils()
    python.interpreter(4, gil=gil)

    assert [] == traced.refresh_gils()
    assert Gil(gil + 32, 3) == traced.gils[gil + 32]


def test_a_lock_that_came_and_went_is_an_ended_interpreters() -> None:
    """
    From 3.12 on a stranger may have been one's whom nobody could ask in time.
    """
    traced = _traced(PythonInMemory("3.12.1"))

    assert "" == _unknown_locks(traced, _COND, _OTHER_COND, _THIRD_COND)
    assert Gil(_OTHER_COND, ENDED_INTERPRETER) == traced.gils[_OTHER_COND]
    assert Gil(_THIRD_COND, ENDED_INTERPRETER) == traced.gils[_THIRD_COND]


def test_no_gil_at_all_is_forgiven_while_python_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    For five seconds, then threads that wait for locks cannot be waiting for a GIL.
    """
    now_s = [1000.0]
    monkeypatch.setattr(traced_module, "time", SimpleNamespace(monotonic=lambda: now_s[0]))
    traced = _traced()
    traced.gils = {}
    reasons = []
    for passed_s in (0.0, 4.0, 1.0, 0.1):
        now_s[0] += passed_s
        reasons.append(_unknown_locks(traced, _COND))

    expected = "threads use a lock, but no GIL of the process can be read"
    assert ["", "", "", expected] == reasons


def test_patience_begins_anew_when_there_is_no_stranger(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    What was explained meanwhile is forgotten.
    """
    now_s = [1000.0]
    monkeypatch.setattr(traced_module, "time", SimpleNamespace(monotonic=lambda: now_s[0]))
    python = PythonInMemory()
    traced, cond = _traced(python), python.gil() + 32
    traced.gils = {}
    assert "" == _unknown_locks(traced, cond)
    python.interpreter(0)
    now_s[0] += 6
    assert "" == _unknown_locks(traced, cond)

    assert 0 == traced.unlisted_since_s


def test_the_one_lock_of_a_process_that_has_ended_is_its_gil() -> None:
    """
    It ended before anybody could ask it; of two locks nobody knows which is whose.
    """
    traced = _traced()
    traced.gils, traced.ended_ns = {}, _NOW_NS
    assert "" == _unknown_locks(traced, _OTHER_COND)
    assert {_OTHER_COND: Gil(_OTHER_COND, 0)} == traced.gils
    traced.gils = {}
    assert "" == _unknown_locks(traced, _COND, _OTHER_COND)
    assert {} == traced.gils


# Threads that have ended.


def _bury(traced: AttachedProcess, tids: Sequence[int], *, is_listed: bool) -> None:
    for tid in tids:
        record = _record(exited_ns=1, hold_ns=100, holds=2, waits=(1, 0, 0, 0), drop_requests=4)
        raw = RawProcess(threads={tid: record}, locks={_COND: _lock()})
        traced.retire(tid, raw, _NOW_NS, is_listed=is_listed)


def test_dead_threads_are_listed_one_by_one() -> None:
    """
    Each with its role and what it held; the number may then be another thread's.
    """
    window = _Window()
    traced = _traced(window=window)
    _bury(traced, [7, 8], is_listed=True)

    assert [(7, "worker", Tally(100, 2), False), (8, "worker", Tally(100, 2), False)] == [
        (thread.tid, thread.role, thread.held, thread.is_alive) for thread in traced.dead_threads
    ]
    assert [7, 8] == window.forgotten
    assert "unknown" == traced.runtime.threads.final(7)


def test_dead_threads_of_a_role_can_be_added_up() -> None:
    """
    A process that starts threads for ever takes no more memory for that.
    """
    traced = _traced(window=_Window())
    _bury(traced, [7, 8, 9], is_listed=False)

    assert {"worker": (0, Tally(200, 4), 2, 8), "other": (0, Tally(100, 2), 1, 4)} == {
        thread.role: (thread.tid, thread.held, thread.waits, thread.drop_requests)
        for thread in traced.dead_threads
    }
    assert Tally(0, 2) == next(iter(traced.dead_threads)).lost[Kind.BLOCKING_CALL]


def test_too_many_dead_threads_are_added_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    A list has an end.
    """
    monkeypatch.setattr(traced_module, "_MOST_DEAD_THREADS", 2)
    traced = _traced()
    _bury(traced, [7, 8, 9], is_listed=True)

    assert {("worker", 2), ("other", 1)} == {
        (thread.role, thread.waits) for thread in traced.dead_threads
    }
    assert [None, None] == [thread.held for thread in traced.dead_threads]


# Observations.


def test_an_observation_has_the_living_and_the_dead() -> None:
    """
    A record whose thread has ended is in the list of the dead already.
    """
    traced = _traced(window=_Window())
    _bury(traced, [7], is_listed=True)
    raw = RawProcess(threads={7: _record(exited_ns=1), 9: _record(hold_ns=5, holds=1)})
    totals = _observed(traced, raw).totals

    assert [(9, Tally(5, 1), True), (7, Tally(100, 2), False)] == [
        (thread.tid, thread.held, thread.is_alive) for thread in totals.threads
    ]
    assert (5 * _S, TracingCost(5, 0.01, 2)) == (totals.observed_ns, totals.cost)


def test_without_windows_holds_are_not_measured() -> None:
    """
    The lock's time is what was sampled, and nothing is called zero.
    """
    traced = _traced()
    raw = RawProcess(threads={9: _record()})
    totals = _observed(traced, raw).totals
    assert (None, None, None) == (
        totals.observed_ns,
        totals.threads[0].held,
        totals.gils[0].held_ns,
    )
    traced.sampled_held_ns[_COND] = 30

    (gil,) = _observed(traced, raw).totals.gils
    assert (None, 30) == (gil.holds, gil.held_ns)


def test_held_time_is_seen_in_windows_and_sampled_between() -> None:
    """
    The two are added, a hold in flight included; in full mode nothing is sampled.
    """
    traced = _traced(window=_Window())
    holding = Holding(tid=9, since_ns=_NOW_NS - 20, part_ns=20)
    raw = RawProcess(locks={_COND: _lock(holding, held_ns=100, holds=3)})
    (gil,) = _observed(traced, raw).totals.gils
    assert 120 == gil.held_ns
    traced.sampled_held_ns[_COND] = 7

    (gil,) = _observed(traced, raw).totals.gils
    assert 127 == gil.held_ns


def test_takes_of_unknown_locks_are_among_the_losses() -> None:
    """
    With the waits that were lost for the same reason.
    """
    raw = RawProcess(lost={Loss.LOCK_UNKNOWN: 2, Loss.ABANDONED: 1})

    assert {"abandoned": 1, "lock_unknown": 5} == (
        _observed(_traced(window=_Window(unknown_takes=3)), raw).totals.lost_events
    )
    assert {"abandoned": 1, "lock_unknown": 2} == (
        _observed(_traced(window=_Window()), raw).totals.lost_events
    )
    assert {Loss.LOCK_UNKNOWN: 2, Loss.ABANDONED: 1} == raw.lost


def test_of_a_process_that_has_ended_nothing_goes_on() -> None:
    """
    Its time ends with it; a hold whose end was not seen has its part, and lasts no longer.
    """
    traced = _traced(window=_Window())
    traced.ended_ns = _NOW_NS - 2 * _S
    holding = Holding(tid=9, since_ns=_NOW_NS - 6 * _S, part_ns=4 * _S)
    observation = _observed(traced, RawProcess(locks={_COND: _lock(holding)}))
    (gil,), (thread,) = observation.totals.gils, observation.totals.threads

    assert observation.ended
    assert (_NOW_NS - 2 * _S, 4 * _S) == (
        observation.totals.at_ns,
        observation.totals.observed_ns,
    )
    assert gil.holds is not None
    assert (4 * _S, 0) == (gil.holds.held_ns, gil.holds.holding_ns)
    assert (9, Tally(4 * _S)) == (thread.tid, thread.held)


def test_what_is_not_believed_is_not_shown() -> None:
    """
    There is a reason, and no numbers.
    """
    traced = _traced(window=_Window())
    traced.invalid = "of this test"
    observation = _observed(traced, RawProcess(threads={9: _record()}, lost={Loss.NOTICE: 1}))

    assert "of this test" == observation.invalid
    assert ((), (), {}, None) == (
        observation.totals.threads,
        observation.totals.gils,
        observation.totals.lost_events,
        observation.totals.observed_ns,
    )


# What cannot be read.


def test_the_libc_method_without_a_gil_sees_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    It counts waits for the GILs that it knows: zeros would be no figures.
    """
    traced = _traced()
    traced.target.process.method = "libc"  # type: ignore[misc]
    now_ns = traced.since_ns + 9 * _S
    monkeypatch.setattr("gilscope.gil.tracing.process.time.monotonic_ns", lambda: now_ns)
    assert "" == traced.reason_to_distrust(RawProcess())
    traced.gils.clear()
    assert "" == traced.reason_to_distrust(RawProcess())

    now_ns += 2 * _S

    assert "no GIL of the process could be read for 10 s" == traced.reason_to_distrust(RawProcess())


def test_a_process_that_tells_of_too_much_is_not_believed() -> None:
    """
    What there is too much of is said.
    """
    traced = _traced()
    traced.over_limit = "its memory tells of more than 256 interpreters"
    assert traced.over_limit == traced.reason_to_distrust(RawProcess())
    traced.over_limit = ""
    cast(
        "_Roles", traced.runtime.threads
    ).over_limit = "its memory tells of more than 16384 threads"

    assert traced.runtime.threads.over_limit == traced.reason_to_distrust(RawProcess())


def test_a_process_that_is_not_read_any_more_is_not_believed() -> None:
    """
    For whatever reason nothing more is read of it.
    """
    traced = _traced()
    reads = DirectReads()
    reads.stopped = "its memory does not answer"
    traced.reads = reads

    assert "its memory does not answer" == traced.reason_to_distrust(RawProcess())
