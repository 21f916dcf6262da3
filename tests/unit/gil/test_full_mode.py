"""Windows are opened and ended as the governor says, and what they cost is told."""

from collections.abc import Sequence
from concurrent.futures import Future
from random import Random
from types import SimpleNamespace
from typing import ClassVar, cast

import pytest

from gilscope.errors import KernelOrBccMissing
from gilscope.gil import full_mode as full_mode_module
from gilscope.gil import tracing_cost
from gilscope.gil.calibration import TrapCosts
from gilscope.gil.full_mode import CONTENTION, FullMode, ObservationPlan
from gilscope.gil.governor import Budget, Grant, Usage
from gilscope.gil.probe import GilProbe
from gilscope.gil.traced import Traced
from gilscope.gil.window import Window, WindowSites
from gilscope.model import Gil, Mode
from unit.gil.lock_model import COND, OTHER_COND, PID, Process

_MS = 1_000_000
_S = 1_000_000_000
_COLD = 1.15
_CONTENDED = 2.6
_COSTS = TrapCosts(
    full_ns=1000.0,
    stepped_ns=20_000.0,
    contention_ns=2000.0,
    inside_hold_ns=500,
    inside_stepped_hold_ns=9_000,
    sharing_ns=100.0,
    is_measured=True,
)
_AUTO = ObservationPlan(Mode.AUTO, 0.02, _COSTS)
_FULL = ObservationPlan(Mode.FULL, costs=_COSTS)


class _Governor:
    """Decides as the test has put down, and keeps what it was asked with."""

    def __init__(self) -> None:
        self.due_ns = 0
        self.is_over_budget = False
        self.processes_per_window = 1.0
        self.decisions: list[Grant | None] = []
        self.asked: list[tuple[Usage, bool]] = []
        self.budget: Budget | None = None

    def made(self, budget: Budget, _random: Random) -> "_Governor":
        self.budget = budget
        return self

    def step(self, usage: Usage, *, is_open: bool) -> Grant | None:
        self.asked.append((usage, is_open))
        return self.decisions.pop(0)


class _Probe:
    """What full mode asks of the probe."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self.contention_traps = 0
        self.spent_on_stacks_ns = 0
        self.stack_shares: list[float] = []
        self.sites: WindowSites | None = None
        self.awaited: list[Future[None]] = []
        self.refusal: Exception | None = None

    def window(self, pid: int, sites: WindowSites, reader: object) -> Window:
        assert (PID, self.process) == (pid, reader)
        self.sites = sites
        return self.process.window

    def walking_ns(self, pid: int) -> int:
        assert PID == pid
        return self.spent_on_stacks_ns

    def read_stacks_of(self, pid: int, share: float) -> None:
        assert PID == pid
        self.stack_shares.append(share)

    def traps(self, pid: int) -> int:
        assert PID == pid
        return self.contention_traps

    def add_other_lock(self, pid: int, cond: int, window: Window) -> None:
        assert (PID, OTHER_COND, self.process.window) == (pid, cond, window)
        if self.refusal is not None:
            raise self.refusal
        self.process.add_lock()

    def await_closing(self, pid: int, closing: Sequence[Future[None]]) -> None:
        assert PID == pid
        self.awaited += closing


def _target(inode: int = 2) -> SimpleNamespace:
    return SimpleNamespace(
        acquires=("T",),
        releases=("R",),
        is_stepped=False,
        file=SimpleNamespace(identity=(1, inode)),
    )


class _Setting:
    """One process of the lock model, its probe, and full mode with a clock that stands still."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.process = Process(monkeypatch)
        self.probe = _Probe(self.process)
        self.cpu_ns: int | None = 0
        self.governor = _Governor()
        for module in (full_mode_module, tracing_cost):
            monkeypatch.setattr(module, "time", self.process)
            monkeypatch.setattr(module, "process_cpu_ns", lambda _: self.cpu_ns)
        monkeypatch.setattr(full_mode_module, "Governor", self.governor.made)
        # What may wait for others is looked at whenever somebody asks.
        monkeypatch.setattr(full_mode_module, "_BEAT_NS", (0, 0))
        self.target = _target()
        self.fields = SimpleNamespace(
            pid=PID,
            target=self.target,
            hooks=tuple,
            locks=self.process,
            gils={COND: Gil(COND, 0)},
            ended=False,
            window=None,
            blame=None,
        )
        self.traced = cast("Traced", self.fields)

    def begun(self, plan: ObservationPlan) -> FullMode:
        """Return full mode that has taken on the process."""
        made = FullMode(cast("GilProbe", self.probe), plan)
        made.begin(self.traced)
        return made

    def works(self, ms: int, *, holds: int = 0, contention_traps: int = 0) -> None:
        """Let the process run for a while on one core."""
        self.process.passes(ms * _MS)
        if self.cpu_ns is not None:
            self.cpu_ns += ms * _MS
        for _ in range(holds):
            self.process.take(7)
            self.process.release()
        self.probe.contention_traps += contention_traps


@pytest.fixture
def setting(monkeypatch: pytest.MonkeyPatch) -> _Setting:
    """A process that nothing has begun with."""
    return _Setting(monkeypatch)


def _grant(traps: int) -> Grant:
    # A bit more, so that rounding does not matter.
    return Grant(allowance_ns=int(traps * _COLD * _COSTS.full_ns) + 1, until_ns=None)


def _price(traps: int, ns: float, factor: float = _COLD) -> int:
    return int(traps * (factor * ns))


# Modes.


def test_contention_mode_has_no_window(setting: _Setting) -> None:
    """
    Nothing is opened; what the contention probes cost is told all the same.
    """
    mode = setting.begun(ObservationPlan(Mode.CONTENTION, costs=_COSTS))
    setting.works(100, contention_traps=50)
    mode.step()
    cost = mode.cost(setting.traced)

    assert setting.traced.window is None
    assert cost is not None
    assert (_price(50, 2000, _CONTENDED), 50) == (cost.overhead_ns, cost.traps)
    assert CONTENTION.mode is Mode.CONTENTION


def test_without_sites_there_is_no_window(setting: _Setting) -> None:
    """
    The libc method has none, whatever the mode.
    """
    setting.target.acquires = ()
    setting.begun(_FULL)

    assert setting.traced.window is None


@pytest.mark.parametrize("mode", [Mode.CONTENTION, Mode.FULL])
def test_all_stacks_are_read_without_a_budget(setting: _Setting, mode: Mode) -> None:
    """
    However dear they are.
    """
    setting.fields.blame = object()
    full_mode = setting.begun(ObservationPlan(mode, costs=_COSTS))
    setting.works(5000)
    setting.probe.spent_on_stacks_ns = 2_000_000_000
    full_mode.step()
    cost = full_mode.cost(setting.traced)

    assert [] == setting.probe.stack_shares
    assert cost is not None
    assert 1.0 == cost.stack_share


@pytest.mark.parametrize("sites", [("T",), ()])
def test_fewer_stacks_are_read_in_auto_mode_where_they_are_dear(
    setting: _Setting, sites: tuple[str, ...]
) -> None:
    """
    So many as half of 2 % of its own time pays for, with windows or without.
    """
    setting.fields.blame = object()
    setting.target.acquires = sites
    setting.governor.decisions = [None]
    full_mode = setting.begun(_AUTO)
    setting.works(1000)
    setting.probe.spent_on_stacks_ns = 20_000_000
    assert full_mode.due_ns <= setting.process.monotonic_ns()
    full_mode.step()
    cost = full_mode.cost(setting.traced)

    expected = pytest.approx(0.5 * 0.02 * 980 / 20)
    assert [expected] == setting.probe.stack_shares
    assert cost is not None
    assert expected == cost.stack_share


def test_share_of_stacks_is_unknown_where_none_are_read(setting: _Setting) -> None:
    """
    It is neither all nor nothing.
    """
    cost = setting.begun(_AUTO).cost(setting.traced)

    assert cost is not None
    assert cost.stack_share is None


def test_full_mode_is_one_window(setting: _Setting) -> None:
    """
    It opens at once, without an allowance, and no governor is asked.
    """
    mode = setting.begun(_FULL)
    for _ in range(3):
        setting.works(1000, holds=1000)
        mode.step()

    assert setting.process.window.is_open
    assert not setting.process.window.has_used_up
    assert setting.governor.budget is None
    assert 1 << 63 == mode.due_ns
    assert WindowSites(("T",), ("R",), 500) == setting.probe.sites  # type: ignore[arg-type]


def test_single_stepped_sites_take_more_from_a_hold(setting: _Setting) -> None:
    """
    The part of the traps that lies in a hold is that of the sites at hand.
    """
    setting.target.is_stepped = True
    setting.begun(_FULL)

    assert setting.probe.sites is not None
    assert 9_000 == setting.probe.sites.inside_hold_ns


def test_auto_mode_asks_the_governor(setting: _Setting) -> None:
    """
    With the budget of the plan; no window is open before it grants one.
    """
    mode = setting.begun(_AUTO)

    assert not setting.process.window.is_open
    assert Budget(0.02) == setting.governor.budget
    setting.governor.due_ns = 77
    assert 77 == mode.due_ns


# Windows.


def test_a_window_opens_when_it_is_granted(setting: _Setting) -> None:
    """
    With as many traps as the allowance pays for.
    """
    mode = setting.begun(_AUTO)
    setting.governor.decisions = [None, _grant(10), None]
    mode.step()
    assert not setting.process.window.is_open
    mode.step()
    assert setting.process.window.is_open
    setting.works(1, holds=5)
    assert not setting.process.window.has_used_up
    setting.works(1, holds=1)
    assert setting.process.window.has_used_up
    assert 5 == setting.process.held().finished.count


def test_nothing_is_asked_before_the_governor_wants_it(setting: _Setting) -> None:
    """
    Between its times a tick costs next to nothing.
    """
    mode = setting.begun(_AUTO)
    setting.governor.decisions = [None]
    mode.step()
    setting.governor.due_ns = setting.process.now_ns + 10 * _MS
    for _ in range(9):
        setting.works(1)
        mode.step()

    assert 1 == len(setting.governor.asked)
    setting.works(1)
    setting.governor.decisions = [None]
    mode.step()
    assert 2 == len(setting.governor.asked)


def test_a_window_that_used_up_its_traps_is_ended_at_once(setting: _Setting) -> None:
    """
    The notice counts, not the time at which the governor is due; it hears what that has cost.
    """
    mode = setting.begun(_AUTO)
    setting.governor.decisions = [_grant(10), None]
    mode.step()
    setting.governor.due_ns = setting.process.now_ns + _S
    setting.works(5, holds=10)
    mode.heed(setting.traced)

    assert not setting.process.window.is_open
    assert set(setting.process.probes.places) == set(setting.process.probes.closing)
    usage, is_open = setting.governor.asked[-1]
    assert not is_open
    assert (setting.process.now_ns, 5 * _MS) == (usage.at_ns, usage.cpu_ns)
    assert _price(20, 1000) == usage.window_cost_ns == usage.cost_ns


def test_a_window_that_is_granted_on_goes_on(setting: _Setting) -> None:
    """
    It may use up the new allowance, from what it has used so far.
    """
    mode = setting.begun(_AUTO)
    setting.governor.decisions = [_grant(10), _grant(10)]
    mode.step()
    setting.works(1, holds=4)
    mode.step()
    assert [False, True] == [is_open for _, is_open in setting.governor.asked]
    setting.works(1, holds=5)
    assert not setting.process.window.has_used_up
    setting.works(1, holds=1)
    assert setting.process.window.has_used_up


def test_a_window_ends_when_it_is_not_granted_on(setting: _Setting) -> None:
    """
    Its probes are on their way out, and the next one waits until they are.
    """
    mode = setting.begun(_AUTO)
    setting.governor.decisions = [_grant(10), None, _grant(10), _grant(10)]
    mode.step()
    setting.works(7)
    mode.step()
    assert not setting.process.window.is_open
    mode.step()
    assert not setting.process.window.is_open
    setting.process.probes.finish_closing()
    mode.step()
    assert setting.process.window.is_open
    assert 7 * _MS == setting.process.window.observed_ns(setting.process.now_ns)


def test_the_smallest_allowance_is_one_trap(setting: _Setting) -> None:
    """
    A window that may use nothing would never end by itself.
    """
    mode = setting.begun(_AUTO)
    setting.governor.decisions = [Grant(1, None)]
    mode.step()
    setting.works(1, holds=1)
    assert not setting.process.window.has_used_up
    setting.works(1, holds=1)

    assert setting.process.window.has_used_up


def test_a_window_that_cannot_be_opened_is_done_without(setting: _Setting) -> None:
    """
    The process has most likely just ended; nobody is bothered with it.
    """
    mode = setting.begun(_AUTO)
    for refusal in (ProcessLookupError(), KernelOrBccMissing("no"), OSError()):
        setting.process.probes.refusals["on_release"] = refusal
        setting.governor.decisions = [_grant(10)]
        mode.step()
        assert not setting.process.window.is_open


def test_a_hold_that_outlasted_its_window_is_looked_after(
    setting: _Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    While it is followed on, all beats are used, whenever the governor is due; then no more.
    """
    mode = setting.begun(_AUTO)
    setting.governor.decisions = [_grant(10), None]
    mode.step()
    setting.works(1)
    setting.process.take(7)
    mode.step()
    setting.governor.due_ns = setting.process.now_ns + _S
    monkeypatch.setattr(full_mode_module, "_BEAT_NS", (50 * _MS, 50 * _MS))
    mode.step()
    assert setting.process.window.is_lingering
    assert setting.process.now_ns + 50 * _MS == mode.due_ns
    setting.process.release()
    setting.works(49)
    mode.step()
    assert setting.process.window.is_lingering
    setting.works(1)
    mode.step()
    assert not setting.process.window.is_lingering
    assert setting.governor.due_ns == mode.due_ns


def test_the_notice_that_such_a_hold_is_over_is_heeded(setting: _Setting) -> None:
    """
    Its probes come out at once, and the governor is not asked for that.
    """
    mode = setting.begun(_AUTO)
    setting.governor.decisions = [_grant(10), None]
    mode.step()
    setting.process.take(7)
    setting.works(1)
    mode.step()
    assert setting.process.window.is_lingering
    setting.process.release()
    mode.heed(setting.traced)

    assert not setting.process.window.is_lingering
    assert 2 == len(setting.governor.asked)


def test_looks_share_their_wake_ups_and_ends_do_not(
    setting: _Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    What the governor wants to see comes at the next beat, but a window ends when it must.
    """
    mode = setting.begun(_AUTO)
    monkeypatch.setattr(full_mode_module, "_BEAT_NS", (100 * _MS, 100 * _MS))
    end_ns = setting.process.now_ns + 60 * _MS
    setting.governor.decisions = [Grant(allowance_ns=_MS, until_ns=end_ns), None, None]
    mode.step()
    setting.governor.due_ns = setting.process.now_ns + 20 * _MS
    assert end_ns == mode.due_ns
    setting.works(40)
    mode.step()
    assert 1 == len(setting.governor.asked)
    setting.works(20)
    mode.step()
    assert 2 == len(setting.governor.asked)
    assert not setting.process.window.is_open

    assert setting.process.now_ns + 40 * _MS == mode.due_ns
    setting.works(40)
    mode.step()
    assert 3 == len(setting.governor.asked)


def test_a_process_that_has_ended_is_left_alone(setting: _Setting) -> None:
    """
    Neither a tick nor a late notice opens anything in it.
    """
    mode = setting.begun(_AUTO)
    setting.fields.ended = True
    mode.step()
    mode.heed(setting.traced)

    assert [] == setting.governor.asked


def test_the_end_takes_the_probes_out(setting: _Setting) -> None:
    """
    The probe is told to wait for that before it attaches again; nobody is due any more.
    """
    mode = setting.begun(_FULL)
    setting.works(3)
    setting.fields.ended = True
    mode.end(setting.traced)

    assert not setting.process.window.is_open
    assert 2 == len(setting.probe.awaited)
    assert set(setting.process.probes.places) == set(setting.process.probes.closing)
    assert 1 << 63 == mode.due_ns


# Costs.


def test_the_cost_is_that_of_all_traps(setting: _Setting) -> None:
    """
    Each kind of trap has its price, rather more than in a practice loop.
    """
    mode = setting.begun(_FULL)
    setting.works(1000, holds=500, contention_traps=30)
    cost = mode.cost(setting.traced)

    assert cost is not None
    expected_ns = _price(1000, 1000) + _price(30, 2000, _CONTENDED)
    assert (expected_ns, 1030) == (cost.overhead_ns, cost.traps)
    assert expected_ns / (_S - expected_ns) == pytest.approx(cost.recent_ratio)


def test_time_that_is_spent_on_stacks_is_told_as_it_is(setting: _Setting) -> None:
    """
    It is measured, not estimated, and comes on top of the traps.
    """
    mode = setting.begun(_FULL)
    setting.works(1000, holds=500, contention_traps=30)
    setting.probe.spent_on_stacks_ns = 77_000
    cost = mode.cost(setting.traced)

    assert cost is not None
    assert _price(1000, 1000) + _price(30, 2000, _CONTENDED) + 77_000 == cost.overhead_ns


def test_every_trap_is_dear_where_calls_go_through_slots(setting: _Setting) -> None:
    """
    The kernel has to single-step them all.
    """
    setting.target.is_stepped = True
    mode = setting.begun(_FULL)
    setting.works(1000, holds=500, contention_traps=30)
    cost = mode.cost(setting.traced)

    assert cost is not None
    assert _price(1000, 20_000) + _price(30, 20_000, _CONTENDED) == cost.overhead_ns


def test_the_ratio_is_that_of_the_last_minute(setting: _Setting) -> None:
    """
    What was dear long ago shows in the sum only.
    """
    mode = setting.begun(_FULL)
    for _ in range(5):
        setting.works(2000, holds=1000)
        busy = mode.cost(setting.traced)
    for _ in range(35):
        setting.works(2000)
        quiet = mode.cost(setting.traced)

    assert busy is not None
    assert quiet is not None
    assert busy.recent_ratio == pytest.approx(1000 * 2 * _COLD * 1000 / (2 * _S), rel=0.01)
    assert 0 == quiet.recent_ratio
    assert busy.overhead_ns == quiet.overhead_ns
    # Each time that it is read, less than a nanosecond is cut off.
    assert busy.overhead_ns == pytest.approx(_price(10_000, 1000), abs=5)


def test_a_process_that_uses_no_cpu_time_has_no_ratio(setting: _Setting) -> None:
    """
    Nothing is divided by nothing.
    """
    mode = setting.begun(_FULL)
    setting.process.passes(_S)
    cost = mode.cost(setting.traced)

    assert cost is not None
    assert (0, 0.0) == (cost.overhead_ns, cost.recent_ratio)


def test_traps_that_nobody_sees_are_reckoned_with(setting: _Setting) -> None:
    """
    A perf event counts no more from its end on, but traps until it is out: as often as before.
    """
    setting.process.probes.has_links = False
    mode = setting.begun(_AUTO)
    setting.governor.decisions = [_grant(1000), None]
    mode.step()
    setting.works(10, holds=50)
    mode.step()
    setting.governor.due_ns = setting.process.now_ns + _S
    ended = mode.cost(setting.traced)
    setting.works(40)
    closing = mode.cost(setting.traced)
    setting.process.probes.finish_closing()
    setting.works(1000)
    closed = mode.cost(setting.traced)

    assert ended is not None
    assert closing is not None
    assert closed is not None
    assert ended.overhead_ns == pytest.approx(_price(100, 1000), abs=2)
    assert closing.overhead_ns == pytest.approx(_price(500, 1000), abs=2)
    assert closing.overhead_ns == closed.overhead_ns
    # Only what was seen is called a trap.
    assert 100 == closed.traps


def test_what_a_process_has_cost_outlives_it(setting: _Setting) -> None:
    """
    Its last figures stay, though nothing can be read of it any more, until it is forgotten.
    """
    mode = setting.begun(_FULL)
    setting.works(1000, holds=500)
    before = mode.cost(setting.traced)
    setting.cpu_ns = None
    setting.fields.ended = True
    mode.end(setting.traced)

    assert before == mode.cost(setting.traced)
    mode.forget(PID)
    assert mode.cost(setting.traced) is None
    mode.end(setting.traced)


# Many processes that run the same file.


class _StubWindow:
    """Opens and ends as it is told, and traps as often as it is told."""

    is_lingering = False
    has_used_up = False
    closes_unseen = False
    trapped = 0

    def __init__(self) -> None:
        self.is_open = False
        self.allowed: list[int | None] = []

    @property
    def can_open(self) -> bool:
        return not self.is_open

    def open(self, traps: int | None = None) -> None:
        self.is_open = True
        self.allowed.append(traps)

    def allow(self, traps: int) -> None:
        self.allowed.append(traps)

    def end(self) -> None:
        self.is_open = False

    def settle(self) -> None:
        pass

    def traps(self) -> int:
        return self.trapped


class _Willing:
    """A governor that grants whatever it is asked for."""

    due_ns = 0
    is_over_budget = False
    processes_per_window = 0.0

    def __init__(self, _budget: Budget, _random: Random) -> None:
        _Crowd.governors.append(self)

    def step(self, _usage: Usage, *, is_open: bool) -> Grant | None:
        del is_open
        return _grant(1000)

    def postpone(self, _usage: Usage) -> None:
        pass


class _Crowd:
    """Processes in auto mode, whose windows are opened whenever there is room."""

    governors: ClassVar[list[_Willing]] = []
    """Of the last crowd."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *inodes: int) -> None:
        self.now_ns = _S
        self.governors.clear()
        self.windows = [_StubWindow() for _ in inodes]
        self._left = iter(self.windows)
        for module in (full_mode_module, tracing_cost):
            monkeypatch.setattr(module, "time", self)
            monkeypatch.setattr(module, "process_cpu_ns", lambda _: 0)
        monkeypatch.setattr(full_mode_module, "Governor", _Willing)
        self.mode = FullMode(cast("GilProbe", self), _AUTO)
        self.traced = [
            cast(
                "Traced",
                SimpleNamespace(
                    pid=pid,
                    target=_target(inode),
                    hooks=tuple,
                    locks=None,
                    gils={},
                    ended=False,
                    window=None,
                    blame=None,
                ),
            )
            for pid, inode in enumerate(inodes)
        ]
        for each in self.traced:
            self.mode.begin(each)

    def monotonic_ns(self) -> int:
        return self.now_ns

    def window(self, _pid: int, _sites: WindowSites, _reader: object) -> _StubWindow:
        return next(self._left)

    def walking_ns(self, _pid: int) -> int:
        """Nobody reads stacks here."""
        return 0

    def traps(self, pid: int) -> int:
        return 10 * (pid + 1)

    def step(self, seconds: int = 0) -> list[bool]:
        """Let time pass and look after all; return which windows are open."""
        self.now_ns += seconds * _S
        self.mode.step()
        return [window.is_open for window in self.windows]


def test_six_windows_are_open_at_a_time_in_one_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Others have to wait; processes that run another file do not.
    """
    crowd = _Crowd(monkeypatch, *[2] * 8, *[3] * 2)

    assert [*[True] * 6, False, False, True, True] == crowd.step()
    assert [*[True] * 6, False, False, True, True] == crowd.step(5)


def test_who_waits_for_a_window_gets_a_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    After ten seconds those that have had one make room, and nobody is left out for good.
    """
    crowd = _Crowd(monkeypatch, *[2] * 8)
    has_been_open = [False] * 8
    for _ in range(60):
        is_open = crowd.step(1)
        assert sum(is_open) <= 6
        has_been_open = [was or now for was, now in zip(has_been_open, is_open, strict=True)]

    assert [True] * 8 == has_been_open


def test_governors_know_how_many_share_the_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Eight processes of one file share six windows, two of another need not.
    """
    crowd = _Crowd(monkeypatch, *[2] * 8, *[3] * 2)
    crowd.step()

    assert [8 / 6] * 8 + [1.0] * 2 == [each.processes_per_window for each in crowd.governors]


def test_nobody_makes_room_where_nobody_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Six windows stay open for as long as they are granted.
    """
    crowd = _Crowd(monkeypatch, *[2] * 6)
    for _ in range(30):
        crowd.step(1)

        # Opened once, allowed more ever since.
        assert [True] * 6 == [window.is_open for window in crowd.windows]
    assert {30} == {len(window.allowed) for window in crowd.windows}


def test_a_trap_costs_more_in_a_crowd(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    The kernel asks every process that is probed at the place, at each trap of each.
    """
    crowd = _Crowd(monkeypatch, *[2] * 4)
    crowd.step()
    for window in crowd.windows:
        window.trapped = 50
    cost = crowd.mode.cost(crowd.traced[2])

    assert cost is not None
    # Three others have a window, and are probed on the contended path; 30 traps were there.
    expected_ns = 50 * _COLD * (1000 + 3 * 100) + 30 * _CONTENDED * (2000 + 3 * 100)
    assert cost.overhead_ns == pytest.approx(expected_ns, abs=3)
    assert 80 == cost.traps


def test_all_traps_are_told_of_those_that_are_forgotten_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """
    The sum never falls.
    """
    crowd = _Crowd(monkeypatch, 2, 2, 3)
    crowd.step()
    before = crowd.mode.traps
    crowd.mode.forget(1)

    assert 10 + 20 + 30 == before == crowd.mode.traps
    assert _COSTS == crowd.mode.trap_costs


# Further locks.


def test_locks_of_further_interpreters_are_counted(setting: _Setting) -> None:
    """
    Each is added once, and the first one never.
    """
    mode = setting.begun(_FULL)
    mode.learn_locks(setting.traced)
    setting.traced.gils[OTHER_COND] = Gil(OTHER_COND, 1)
    for _ in range(2):
        mode.learn_locks(setting.traced)

    assert [OTHER_COND] == list(setting.process.window.other_slots)


def test_a_lock_without_room_disturbs_nothing(setting: _Setting) -> None:
    """
    The others are counted on; takes of this one are counted as lost.
    """
    mode = setting.begun(_FULL)
    setting.probe.refusal = KernelOrBccMissing("one too many")
    setting.traced.gils[OTHER_COND] = Gil(OTHER_COND, 1)
    mode.learn_locks(setting.traced)
    setting.works(1, holds=1)
    setting.process.take(8, OTHER_COND)

    assert (True, 1, 1) == (
        setting.process.window.is_open,
        setting.process.held().finished.count,
        setting.process.window.unknown_takes(),
    )


def test_a_first_lock_that_is_not_known_yet_is_not_taken_for_another(
    monkeypatch: pytest.MonkeyPatch, setting: _Setting
) -> None:
    """
    Where the process was attached before Python had its locks, the first one gets the first slot.
    """
    setting.process = setting.probe.process = Process(monkeypatch, cond=0)
    setting.fields.locks = setting.process
    mode = setting.begun(_AUTO)
    setting.traced.gils[OTHER_COND] = Gil(OTHER_COND, 1)
    mode.learn_locks(setting.traced)

    assert COND not in setting.process.window.other_slots
