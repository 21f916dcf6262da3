"""``gilscope record --locks``: who had the lock that a thread began to wait for."""

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from support.interpreters.known import FREE_THREADED, MUSL_FREE_THREADED, ONE_PER_MINOR, Interpreter
from support.tracing.lock_waits import of_thread, recorded_locks, waits_started

pytestmark = pytest.mark.live

_NEARLY_ALL = 0.95
"""Of the time: who has a lock may be on its way when it is looked at."""
_ORDINARY = [
    each for each in ONE_PER_MINOR if getattr(each, "id", None) in ("debian-3.14", "debian-3.15")
]
# An RLock of 3.13 says nothing.
_WITH_OWNERS = [
    each
    for each in [*FREE_THREADED, *MUSL_FREE_THREADED, *_ORDINARY]
    if not str(getattr(each, "id", "")).endswith("3.13")
]


def _held_s(report: Mapping[str, Any], kind: str, function: str) -> dict[tuple[str, ...], float]:
    """Return by what functions it was held, innermost first, that *function* waited for."""
    found: dict[tuple[str, ...], float] = defaultdict(float)
    for thread in report["threads"]:
        for wait in thread["waits"]:
            stack = wait["frames"] or [{"function": ""}]
            if wait["kind"] == kind and stack[0]["function"] == function:
                holder = tuple(frame["function"] for frame in wait["held_by"] or ())
                found[holder[:1]] += wait["wait_s"]
    return found


def _share(held_s: Mapping[tuple[str, ...], float], holder: str) -> float:
    return held_s.get((holder,), 0) / sum(held_s.values())


@pytest.mark.parametrize("interpreter", [*FREE_THREADED, *MUSL_FREE_THREADED])
def test_who_has_an_object_is_told_where_it_is_in_a_critical_section(
    interpreter: Interpreter, sleep_clock: Path, tmp_path: Path
) -> None:
    """
    Two threads store into a list while a third one sorts it: that one has it, and nobody else.
    """
    with waits_started(interpreter, sleep_clock, "object") as workload:
        _, report, text = recorded_locks(workload, tmp_path)

    assert _share(_held_s(report, "object", "store"), "sort") > _NEARLY_ALL
    assert "held by" in text


@pytest.mark.parametrize("interpreter", FREE_THREADED)
def test_who_has_two_objects_is_told_of_both(
    interpreter: Interpreter, sleep_clock: Path, tmp_path: Path
) -> None:
    """
    A critical section may have two locks: of the set that is merged into, and of the other one.
    """
    with waits_started(interpreter, sleep_clock, "sets") as workload:
        _, report, _ = recorded_locks(workload, tmp_path)

    by_thread = [_held_s({"threads": [each]}, "object", "add") for each in report["threads"]]
    one, other = (held_s for held_s in by_thread if held_s)
    for held_s in (one, other):
        assert _share(held_s, "merge") > _NEARLY_ALL


@pytest.mark.parametrize("interpreter", FREE_THREADED)
def test_who_has_gone_on_meanwhile_is_not_told(
    interpreter: Interpreter, sleep_clock: Path, tmp_path: Path
) -> None:
    """
    It has an object for a microsecond, and stands elsewhere for longer: there nobody is told.
    """
    with waits_started(interpreter, sleep_clock, "short_holds") as workload:
        _, report, _ = recorded_locks(workload, tmp_path)

    waits = [
        wait for thread in report["threads"] for wait in thread["waits"] if wait["kind"] == "object"
    ]
    held = [wait for wait in waits if wait["held_by"]]
    assert {"sort_and_sum"} == {wait["held_by"][0]["function"] for wait in held}
    assert {0} == {wait["held_by"][0]["line"] - wait["frames"][0]["line"] for wait in held}


@pytest.mark.parametrize("interpreter", _WITH_OWNERS)
def test_who_has_an_rlock_is_told(
    interpreter: Interpreter, sleep_clock: Path, tmp_path: Path
) -> None:
    """
    It stands in its pause when others begin to wait, and is at the release when they get the lock.

    Or it was given the lock just then, and stands at its acquire.
    """
    with waits_started(interpreter, sleep_clock, "rlock") as workload:
        _, report, _ = recorded_locks(workload, tmp_path)

    lines: dict[int, float] = defaultdict(float)
    for thread in report["threads"]:
        for wait in thread["waits"]:
            if wait["kind"] == "rlock" and wait["held_by"]:
                lines[wait["held_by"][0]["line"] - wait["frames"][0]["line"]] += wait["wait_s"]
    assert _share(_held_s(report, "rlock", "hold"), "hold") > _NEARLY_ALL
    # The pause is two lines behind the acquire.
    assert lines[0] + lines[2] > _NEARLY_ALL * sum(lines.values())
    assert lines[2] > lines[0]


@pytest.mark.parametrize("interpreter", _WITH_OWNERS)
def test_who_was_given_an_rlock_has_it(
    interpreter: Interpreter, sleep_clock: Path, tmp_path: Path
) -> None:
    """
    Who lets it go hands it over, and wants it again before the other one has run.
    """
    with waits_started(interpreter, sleep_clock, "rlock_turns") as workload:
        truth, report, _ = recorded_locks(workload, tmp_path)

    assert _share(_held_s(report, "rlock", "hold"), "hold") > _NEARLY_ALL
    for tid in truth["threads"]:
        assert of_thread(report, tid)["sleeps"] == truth["threads"][tid]["sleeps"]
    # At its acquire, or on its way to the pause two lines behind; it does not release it yet.
    lines = {
        wait["held_by"][0]["line"] - wait["frames"][0]["line"]
        for thread in report["threads"]
        for wait in thread["waits"]
        if wait["kind"] == "rlock" and wait["held_by"]
    }
    assert {0} <= lines <= {0, 1, 2}


@pytest.mark.parametrize("interpreter", _WITH_OWNERS)
def test_who_was_given_an_rlock_and_has_released_it_has_it_not(
    interpreter: Interpreter, sleep_clock: Path, tmp_path: Path
) -> None:
    """
    It stands elsewhere when the next one gets the lock.
    """
    with waits_started(interpreter, sleep_clock, "rlock_elsewhere") as workload:
        _, report, _ = recorded_locks(workload, tmp_path)

    held_s = _held_s(report, "rlock", "pass_by")
    assert {"hold"} <= {holder for (holder,) in held_s.keys() - {()}} <= {"hold", "pass_by"}
    assert _share(held_s, "hold") > _NEARLY_ALL


@pytest.mark.parametrize("interpreter", [*FREE_THREADED[:1], *_ORDINARY[:1]])
def test_holders_take_no_room_from_waits(
    interpreter: Interpreter, sleep_clock: Path, tmp_path: Path
) -> None:
    """
    A thread's waits are told by so many of them; all count, also by those that came later.
    """
    with waits_started(interpreter, sleep_clock, "everywhere") as workload:
        truth, report, _ = recorded_locks(workload, tmp_path)

    _, (visitor, known) = truth["threads"].items()
    assert known["sleeps"] == of_thread(report, visitor)["sleeps"]
    assert {} == report["lost_events"]
    (thread,) = (each for each in report["threads"] if each["tid"] == int(visitor))
    lines = [wait["held_by"][0]["line"] for wait in thread["waits"] if wait["held_by"]]
    assert 64 == len(lines)
    assert known["sleeps"] > 2 * len(lines)


@pytest.mark.parametrize("interpreter", [*FREE_THREADED[:1], *_ORDINARY[:1]])
def test_two_that_wait_for_each_other_hold_each_others_locks(
    interpreter: Interpreter, sleep_clock: Path, tmp_path: Path
) -> None:
    """
    Neither is woken by anybody: who has the lock is all there is to know.
    """
    with waits_started(interpreter, sleep_clock, "crossed") as workload:
        _, report, _ = recorded_locks(workload, tmp_path)

    waits = [
        wait for thread in report["threads"] for wait in thread["waits"] if wait["kind"] == "rlock"
    ]
    assert [1, 1] == [wait["waits"] for wait in waits]
    for wait in waits:
        assert "cross" in {frame["function"] for frame in wait["held_by"]}
        assert wait["released_by"] is None


@pytest.mark.parametrize("interpreter", [*FREE_THREADED[:1], *_ORDINARY[:1]])
def test_nobody_is_said_to_have_a_plain_lock(
    interpreter: Interpreter, sleep_clock: Path, tmp_path: Path
) -> None:
    """
    Nothing says whose it is.
    """
    with waits_started(interpreter, sleep_clock, "lock") as workload:
        _, report, text = recorded_locks(workload, tmp_path)

    assert {()} == set(_held_s(report, "lock", "hold"))
    assert "held by" not in text
