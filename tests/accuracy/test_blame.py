"""Both ends of waits that stand still, against what the interpreter says of its own stacks."""

from collections import defaultdict
from dataclasses import replace

import pytest

from accuracy.blame_truth import (
    MOST_FRAMES,
    Played,
    Stage,
    assert_adds_up,
    assert_blamed,
    known_share,
    lines_marked,
    lost_by,
    told,
)
from gilscope.model.kinds import Kind
from gilscope.model.stack import UNKNOWN_FRAME, Stack, StackState

pytestmark = [pytest.mark.live, pytest.mark.slow]

_MS = 1_000_000

_HOLDERS = "blame_holders.py"
_STACKS = "blame_stacks.py"
_NAMES = "blame_names.py"
_THREADS = "blame_threads.py"
_SCRIPTS = (_HOLDERS, _STACKS, _NAMES, _THREADS)

_ONE_WAITER = (
    *((_HOLDERS, scenario) for scenario in ("c_call", "two_lines", "expression")),
    *((_STACKS, scenario) for scenario in ("generators", "coroutines", "callbacks", "encoder")),
    (_NAMES, "unusual"),
    *((_THREADS, scenario) for scenario in ("native", "native_waiter", "short_lived")),
)
_SEVERAL_WAITERS = ((_HOLDERS, "three_waiters"), (_STACKS, "recursion"))

_RIVALS = 0.1
"""Of three that wait at the same time, the last one waits for the other two at its end."""

_KNOWN = 0.99

_TOLERANCE = 0.01
_PROPORTION = 0.02

_ASKED_AFTER_NS = 5 * _MS
_DROP_SLACK_NS = 1 * _MS
_ASKED_LATE = 0.8


@pytest.mark.parametrize("script", _SCRIPTS)
def test_edges_add_up_to_the_waiting_time(script: str, stage: Stage) -> None:
    """
    Of each kind, every nanosecond that was lost has a waiter and a holder, and nothing more.
    """
    workload = stage.played(script)

    for observation in workload.seen.values():
        assert_adds_up(observation)
        # Threads that start and end do not stand still.
        assert {"stack_torn", "stack_unknown"} >= set(observation.totals.lost_events)


@pytest.mark.parametrize("script", _SCRIPTS)
def test_program_tells_the_marked_lines(script: str, stage: Stage) -> None:
    """
    The truth itself: both ends are in lines that the program marks, and all of these occur.
    """
    workload = stage.played(script)
    pairs = [edge for scenario in workload.truth.values() for edge in scenario]

    assert lines_marked(workload.script, "waits here") == _own_lines(
        workload, [edge.waiter for edge in pairs]
    )
    assert lines_marked(workload.script, "holds here") == _own_lines(
        workload, [edge.holder for edge in pairs]
    )


@pytest.mark.parametrize(("script", "scenario"), _ONE_WAITER)
def test_wait_is_blamed_on_the_line_that_kept_it(script: str, scenario: str, stage: Stage) -> None:
    """
    Function, file and line of every frame at both ends, the waiting time and the waits are right.
    """
    workload = stage.played(script)

    assert_blamed(workload, scenario)
    assert known_share(workload.edges_of(scenario)) >= _KNOWN


@pytest.mark.parametrize(("script", "scenario"), _SEVERAL_WAITERS)
def test_each_of_several_waiters_is_told_apart(script: str, scenario: str, stage: Stage) -> None:
    """
    Threads that wait for the same holder at the same time have an edge each, by their own clocks.
    """
    workload = stage.played(script)

    assert_blamed(workload, scenario, rivals=_RIVALS)
    assert known_share(workload.edges_of(scenario)) >= _KNOWN


def test_call_into_c_is_blamed_on_its_line(stage: Stage) -> None:
    """
    Whoever waits for a regular expression waits for the line that uses it, from the beginning.
    """
    workload = stage.played(_HOLDERS)
    (truth,) = workload.truth["regex"]
    edges = [edge for edge in workload.edges_of("regex") if edge.waiter == truth.waiter]

    assert {truth.holder} == {edge.holder for edge in edges}
    assert truth.agrees_with(lost_by(edges).ns)
    # Once for each call of the line in which the holder was seen.
    assert truth.lost.count <= lost_by(edges).count <= 2 * truth.lost.count


def test_two_lines_share_the_time_as_they_took_it(stage: Stage) -> None:
    """
    A holder that stands in one line twice as long as in the other is blamed in that proportion.
    """
    workload = stage.played(_HOLDERS)
    edges = workload.edges_of("two_lines")
    shorter, longer = workload.truth["two_lines"]
    seen_ns = [
        lost_by(edge for edge in edges if edge.holder == true.holder).ns
        for true in (shorter, longer)
    ]

    if shorter.uncertain_ns + longer.uncertain_ns < _MS:
        assert seen_ns[1] / seen_ns[0] == pytest.approx(
            longer.lost.ns / shorter.lost.ns, rel=_PROPORTION
        )


def test_each_place_has_the_kind_of_its_waits(stage: Stage) -> None:
    """
    Of two lines of one expression, one keeps the waiter for longer than a switch interval.
    """
    workload = stage.played(_HOLDERS)
    shorter, longer = workload.truth["expression"]
    kinds = defaultdict(set)
    for edge in workload.edges_of("expression"):
        if edge.waiter == shorter.waiter:
            kinds[edge.holder].add(edge.kind)

    assert {Kind.CONVOY} == kinds[longer.holder]
    # On a busy machine one of them may become a convoy too.
    assert Kind.BLOCKING_CALL in kinds[shorter.holder]


def test_deep_stack_is_cut_at_its_outer_end(stage: Stage) -> None:
    """
    25 levels of recursion are whole; of 100 the innermost 32 frames are noted.
    """
    workload = stage.played(_STACKS)
    holders = {edge.holder for edge in workload.truth["recursion"]}
    seen = {edge.holder for edge in workload.edges_of("recursion")}
    (cut,) = [stack for stack in holders if stack.state is StackState.CUT]
    (whole,) = holders - {cut}

    assert holders <= seen
    assert MOST_FRAMES == len(cut.frames)
    assert {"dive"} == {frame.function for frame in cut.frames}
    assert 25 == [frame.function for frame in whole.frames].count("dive")


def test_code_that_does_not_let_go_is_a_slow_drop(stage: Stage) -> None:
    """
    A call of C that goes on for 45 ms after it was asked is named, twice, with that time.
    """
    workload = stage.played(_HOLDERS)
    (truth,) = workload.truth["c_call"]
    (slow_drop,) = [
        each for each in workload.observation.totals.slow_drops if each.holder == truth.holder
    ]
    # A busy machine wakes the waiter later than it wanted, and so it asks later.
    latest_ns = truth.lost.ns - 2 * _ASKED_AFTER_NS
    latencies_ns = range(int(latest_ns * _ASKED_LATE), latest_ns + _DROP_SLACK_NS)

    assert 2 == slow_drop.drop_latency.count
    assert slow_drop.drop_latency.ns in latencies_ns
    assert slow_drop.drop_latency.ns / 2 <= slow_drop.longest_ns <= latest_ns


def test_code_that_lets_go_soon_enough_is_no_slow_drop(stage: Stage) -> None:
    """
    Where every wait is over within 8 ms, nobody has taken long to answer.
    """
    workload = stage.played(_HOLDERS)
    answered = {edge.holder for edge in workload.truth["expression"]}

    assert not answered & {each.holder for each in workload.observation.totals.slow_drops}


def test_code_that_is_gone_is_never_given_another_name(stage: Stage) -> None:
    """
    Of functions that exist for 23 ms each, any that is named has no more than its own time.
    """
    workload = stage.played(_NAMES)
    truth = {edge.holder: edge for edge in workload.truth["fleeting"]}
    (waiter,) = {edge.waiter for edge in truth.values()}
    # The main thread, which lets them begin and end, may hold the lock for an instant too.
    theirs = [
        edge
        for edge in workload.edges_of("fleeting")
        if edge.waiter == waiter and not _is_main(edge.holder)
    ]

    assert 30 == len(truth)
    for edge in theirs:
        possible = [each for holder, each in truth.items() if _may_be(edge.holder, holder)]
        assert possible, told([edge])
        if len(possible) == 1:
            assert possible[0].agrees_with(edge.lost.ns), told([edge])


def _may_be(seen: Stack, true: Stack) -> bool:
    """Whether all that is said of a stack is true; that it is unknown always is."""
    if seen.state is StackState.UNKNOWN:
        return True
    return len(seen.frames) == len(true.frames) and all(
        frame in (UNKNOWN_FRAME, known, replace(known, line=None))
        for frame, known in zip(seen.frames, true.frames, strict=True)
    )


def _is_main(stack: Stack) -> bool:
    return bool(stack.frames) and stack.frames[-1].function == "<module>"


def _own_lines(workload: Played, stacks: list[Stack]) -> set[int]:
    """Return the lines of the workload's own file at which stacks end."""
    innermost = [stack.frames[0] for stack in stacks if stack.frames]
    return {frame.line for frame in innermost if frame.file == str(workload.script) and frame.line}
