"""Windows are opened and ended as the governor says."""

import pytest

from gilscope.budget.governor import Budget, Grant
from gilscope.errors import KernelOrBccMissing
from gilscope.gil.plan import CONTENTION, ObservationPlan
from gilscope.gil.probes.window_probes import WindowSites
from gilscope.gil.tracing import windows as windows_module
from gilscope.model.gil import Gil
from gilscope.model.kinds import Mode
from support.gil.lock_model import COND, OTHER_COND, Process
from support.gil.windows_setting import (
    AUTO,
    CONTENDED,
    COSTS,
    FULL,
    MS,
    S,
    Setting,
    grant,
    price,
)

# Modes.


def test_contention_mode_has_no_window(setting: Setting) -> None:
    """
    Nothing is opened; what the contention probes cost is told all the same.
    """
    mode = setting.begun(ObservationPlan(Mode.CONTENTION, costs=COSTS))
    setting.works(100, contention_traps=50)
    mode.step()
    cost = mode.cost(setting.traced)

    assert setting.traced.window is None
    assert cost is not None
    assert (price(50, 2000, CONTENDED), 50) == (cost.overhead_ns, cost.traps)
    assert CONTENTION.mode is Mode.CONTENTION


def test_without_sites_there_is_no_window(setting: Setting) -> None:
    """
    The libc method has none, whatever the mode.
    """
    setting.target.acquires = ()
    setting.begun(FULL)

    assert setting.traced.window is None


@pytest.mark.parametrize("mode", [Mode.CONTENTION, Mode.FULL])
def test_all_stacks_are_read_without_a_budget(setting: Setting, mode: Mode) -> None:
    """
    However dear they are.
    """
    setting.fields.blame = object()
    windows = setting.begun(ObservationPlan(mode, costs=COSTS))
    setting.works(5000)
    setting.probe.spent_on_stacks_ns = 2_000_000_000
    windows.step()
    cost = windows.cost(setting.traced)

    assert [] == setting.probe.stack_shares
    assert cost is not None
    assert 1.0 == cost.stack_share


@pytest.mark.parametrize("sites", [("T",), ()])
def test_fewer_stacks_are_read_in_auto_mode_where_they_are_dear(
    setting: Setting, sites: tuple[str, ...]
) -> None:
    """
    So many as half of 2 % of its own time pays for, with windows or without.
    """
    setting.fields.blame = object()
    setting.target.acquires = sites
    setting.governor.decisions = [None]
    windows = setting.begun(AUTO)
    setting.works(1000, contention_traps=1)
    setting.probe.spent_on_stacks_ns = 20_000_000
    assert windows.due_ns <= setting.process.monotonic_ns()
    windows.step()
    cost = windows.cost(setting.traced)

    expected = pytest.approx(0.5 * 0.02 * 980 / 20, rel=1e-3)
    assert [expected] == setting.probe.stack_shares
    assert cost is not None
    assert expected == cost.stack_share


def test_share_of_stacks_outlives_the_process(setting: Setting) -> None:
    """
    What is told of a process that has ended was made from that share.
    """
    setting.fields.blame = object()
    setting.governor.decisions = [None]
    windows = setting.begun(AUTO)
    setting.works(1000, contention_traps=1)
    setting.probe.spent_on_stacks_ns = 20_000_000
    windows.step()
    windows.end(setting.traced)
    setting.fields.ended = True
    cost = windows.cost(setting.traced)

    assert cost is not None
    assert pytest.approx(0.5 * 0.02 * 980 / 20, rel=1e-3) == cost.stack_share


def test_a_process_that_has_not_waited_is_not_asked_what_it_has_used(setting: Setting) -> None:
    """
    That takes several system calls, for each of a thousand idle workers.
    """
    setting.fields.blame = object()
    setting.target.acquires = ()
    windows = setting.begun(AUTO)
    before = setting.cpu_reads
    setting.works(1000)
    windows.step()

    assert setting.process.monotonic_ns() + 4 * S == windows.due_ns
    assert before == setting.cpu_reads
    setting.works(4000, contention_traps=1)
    windows.step()
    assert before + 1 == setting.cpu_reads


def test_share_of_stacks_is_unknown_where_none_are_read(setting: Setting) -> None:
    """
    It is neither all nor nothing.
    """
    cost = setting.begun(AUTO).cost(setting.traced)

    assert cost is not None
    assert cost.stack_share is None


def test_full_mode_is_one_window(setting: Setting) -> None:
    """
    It opens at once, without an allowance, and no governor is asked.
    """
    mode = setting.begun(FULL)
    for _ in range(3):
        setting.works(1000, holds=1000)
        mode.step()

    assert setting.process.window.is_open
    assert not setting.process.window.has_used_up
    assert setting.governor.budget is None
    assert 1 << 63 == mode.due_ns
    assert WindowSites(("T",), ("R",), 500) == setting.probe.sites  # type: ignore[arg-type]


def test_single_stepped_sites_take_more_from_a_hold(setting: Setting) -> None:
    """
    The part of the traps that lies in a hold is that of the sites at hand.
    """
    setting.target.is_stepped = True
    setting.begun(FULL)

    assert setting.probe.sites is not None
    assert 9_000 == setting.probe.sites.inside_hold_ns


def test_auto_mode_asks_the_governor(setting: Setting) -> None:
    """
    With the budget of the plan; no window is open before it grants one.
    """
    setting.governor.due_ns = 77
    mode = setting.begun(AUTO)

    assert not setting.process.window.is_open
    assert Budget(0.02) == setting.governor.budget
    assert 77 == mode.due_ns


# Windows.


def test_a_window_opens_when_it_is_granted(setting: Setting) -> None:
    """
    With as many traps as the allowance pays for.
    """
    mode = setting.begun(AUTO)
    setting.governor.decisions = [None, grant(10), None]
    mode.step()
    assert not setting.process.window.is_open
    mode.step()
    assert setting.process.window.is_open
    setting.works(1, holds=5)
    assert not setting.process.window.has_used_up
    setting.works(1, holds=1)
    assert setting.process.window.has_used_up
    assert 5 == setting.process.held().finished.count


def test_nothing_is_asked_before_the_governor_wants_it(setting: Setting) -> None:
    """
    Between its times a tick costs next to nothing.
    """
    mode = setting.begun(AUTO)
    setting.governor.decisions = [None]
    mode.step()
    setting.governor.due_ns = setting.process.now_ns + 10 * MS
    for _ in range(9):
        setting.works(1)
        mode.step()

    assert 1 == len(setting.governor.asked)
    setting.works(1)
    setting.governor.decisions = [None]
    mode.step()
    assert 2 == len(setting.governor.asked)


def test_a_window_that_used_up_its_traps_is_ended_at_once(setting: Setting) -> None:
    """
    The notice counts, not the time at which the governor is due; it hears what that has cost.
    """
    mode = setting.begun(AUTO)
    setting.governor.decisions = [grant(10), None]
    mode.step()
    setting.governor.due_ns = setting.process.now_ns + S
    setting.works(5, holds=10)
    mode.learn(setting.traced)

    assert not setting.process.window.is_open
    assert set(setting.process.probes.places) == set(setting.process.probes.closing)
    usage, is_open = setting.governor.asked[-1]
    assert not is_open
    assert (setting.process.now_ns, 5 * MS) == (usage.at_ns, usage.cpu_ns)
    assert price(20, 1000) == usage.window_cost_ns == usage.cost_ns


def test_a_window_that_is_granted_on_goes_on(setting: Setting) -> None:
    """
    It may use up the new allowance, from what it has used so far.
    """
    mode = setting.begun(AUTO)
    setting.governor.decisions = [grant(10), grant(10)]
    mode.step()
    setting.works(1, holds=4)
    mode.step()
    assert [False, True] == [is_open for _, is_open in setting.governor.asked]
    setting.works(1, holds=5)
    assert not setting.process.window.has_used_up
    setting.works(1, holds=1)
    assert setting.process.window.has_used_up


def test_a_window_ends_when_it_is_not_granted_on(setting: Setting) -> None:
    """
    Its probes are on their way out, and the next one waits until they are.
    """
    mode = setting.begun(AUTO)
    setting.governor.decisions = [grant(10), None, grant(10), grant(10)]
    mode.step()
    setting.works(7)
    mode.step()
    assert not setting.process.window.is_open
    mode.step()
    assert not setting.process.window.is_open
    setting.process.probes.finish_closing()
    mode.step()
    assert setting.process.window.is_open
    assert 7 * MS == setting.process.window.observed_ns(setting.process.now_ns)


def test_the_smallest_allowance_is_one_trap(setting: Setting) -> None:
    """
    A window that may use nothing would never end by itself.
    """
    mode = setting.begun(AUTO)
    setting.governor.decisions = [Grant(1, None)]
    mode.step()
    setting.works(1, holds=1)
    assert not setting.process.window.has_used_up
    setting.works(1, holds=1)

    assert setting.process.window.has_used_up


def test_a_window_that_cannot_be_opened_is_done_without(setting: Setting) -> None:
    """
    The process has most likely just ended; nobody is bothered with it.
    """
    mode = setting.begun(AUTO)
    for refusal in (ProcessLookupError(), KernelOrBccMissing("no"), OSError()):
        setting.process.probes.refusals["on_release"] = refusal
        setting.governor.decisions = [grant(10)]
        mode.step()
        assert not setting.process.window.is_open


def test_a_hold_that_outlasted_its_window_is_looked_after(
    setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    While it is followed on, all beats are used, whenever the governor is due; then no more.
    """
    mode = setting.begun(AUTO)
    setting.governor.decisions = [grant(10), None]
    mode.step()
    setting.works(1)
    setting.process.take(7)
    mode.step()
    setting.governor.due_ns = setting.process.now_ns + S
    monkeypatch.setattr(windows_module, "_BEAT_NS", (50 * MS, 50 * MS))
    mode.step()
    assert setting.process.window.is_lingering
    assert setting.process.now_ns + 50 * MS == mode.due_ns
    setting.process.release()
    setting.works(49)
    mode.step()
    assert setting.process.window.is_lingering
    setting.works(1)
    mode.step()
    assert not setting.process.window.is_lingering
    assert setting.governor.due_ns == mode.due_ns


def test_the_notice_that_such_a_hold_is_over_is_learned(setting: Setting) -> None:
    """
    Its probes come out at once, and the governor is not asked for that.
    """
    mode = setting.begun(AUTO)
    setting.governor.decisions = [grant(10), None]
    mode.step()
    setting.process.take(7)
    setting.works(1)
    mode.step()
    assert setting.process.window.is_lingering
    setting.process.release()
    mode.learn(setting.traced)

    assert not setting.process.window.is_lingering
    assert 2 == len(setting.governor.asked)


def test_looks_share_their_wake_ups_and_ends_do_not(
    setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    What the governor wants to see comes at the next beat, but a window ends when it must.
    """
    mode = setting.begun(AUTO)
    monkeypatch.setattr(windows_module, "_BEAT_NS", (100 * MS, 100 * MS))
    end_ns = setting.process.now_ns + 60 * MS
    setting.governor.decisions = [Grant(allowance_ns=MS, until_ns=end_ns), None, None]
    mode.step()
    setting.governor.due_ns = setting.process.now_ns + 20 * MS
    assert end_ns == mode.due_ns
    setting.works(40)
    mode.step()
    assert 1 == len(setting.governor.asked)
    setting.works(20)
    mode.step()
    assert 2 == len(setting.governor.asked)
    assert not setting.process.window.is_open

    assert setting.process.now_ns + 40 * MS == mode.due_ns
    setting.works(40)
    mode.step()
    assert 3 == len(setting.governor.asked)


def test_a_process_that_has_ended_is_left_alone(setting: Setting) -> None:
    """
    Neither a tick nor a late notice opens anything in it.
    """
    mode = setting.begun(AUTO)
    setting.fields.ended = True
    mode.step()
    mode.learn(setting.traced)

    assert [] == setting.governor.asked


def test_the_end_takes_the_probes_out(setting: Setting) -> None:
    """
    The probe is told to wait for that before it attaches again; nobody is due any more.
    """
    mode = setting.begun(FULL)
    setting.works(3)
    setting.fields.ended = True
    mode.end(setting.traced)

    assert not setting.process.window.is_open
    assert 2 == len(setting.probe.awaited)
    assert set(setting.process.probes.places) == set(setting.process.probes.closing)
    assert 1 << 63 == mode.due_ns


# Further locks.


def test_locks_of_further_interpreters_are_counted(setting: Setting) -> None:
    """
    Each is added once, and the first one never.
    """
    mode = setting.begun(FULL)
    mode.learn_locks(setting.traced)
    setting.traced.gils[OTHER_COND] = Gil(OTHER_COND, 1)
    for _ in range(2):
        mode.learn_locks(setting.traced)

    assert [OTHER_COND] == list(setting.process.window.other_slots)


def test_a_lock_without_room_disturbs_nothing(setting: Setting) -> None:
    """
    The others are counted on; takes of this one are counted as lost.
    """
    mode = setting.begun(FULL)
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
    monkeypatch: pytest.MonkeyPatch, setting: Setting
) -> None:
    """
    Where the process was attached before Python had its locks, the first one gets the first slot.
    """
    setting.process = setting.probe.process = Process(monkeypatch, cond=0)
    setting.fields.runtime.locks = setting.process
    mode = setting.begun(AUTO)
    setting.traced.gils[OTHER_COND] = Gil(OTHER_COND, 1)
    mode.learn_locks(setting.traced)

    assert COND not in setting.process.window.other_slots
