"""``gilscope record --locks``: waits for locks, against clocks in the target itself."""

import json
import re
from collections import defaultdict
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from accuracy.truth import Workload
from gilscope.locks.account import LockAccount
from gilscope.locks.probe import LockProbe
from gilscope.locks.program import begin_loading
from gilscope.model.locks import LockKind
from gilscope.reports.locks.perfetto import LOCKS_TID, STOPS_TID
from support.commands.gilscope import gilscope_started
from support.interpreters.known import FREE_THREADED, MUSL_FREE_THREADED, ONE_PER_MINOR, Interpreter
from support.tracing.lock_waits import of_thread, recorded_locks, waits_in, waits_started

pytestmark = pytest.mark.live

_S = "1.8"
_CREDIT_S = 0.02
"""What the first window may cost."""
_PAID_BACK_S = "9"
"""After so long what traps have cost while its probes came out is paid back, slow ones too."""
_TIMED = {"hold", "store"}
"""Functions that time what they wait for."""
_TOLERANCE = 0.01
_LEAST_OF_ALL = 0.97
"""A thread that has its lock may lose its CPU before it looks at its own clock again."""

_MOST_STOPS = 2.1
_LEAST_OF_STOPS = 0.9
"""Who has been stopped takes some time to wake up."""

_ORDINARY = [
    each for each in ONE_PER_MINOR if getattr(each, "id", None) in ("debian-3.14", "debian-3.15")
]
_ALL = [*FREE_THREADED, *MUSL_FREE_THREADED, *_ORDINARY]
_TWO = [*FREE_THREADED[:1], *_ORDINARY[:1]]


def _places(report: Mapping[str, Any]) -> dict[tuple[str, str | None, str], float]:
    """Return what was waited for, and in which function, with the time."""
    places: dict[tuple[str, str | None, str], float] = {}
    for thread in report["threads"]:
        for wait in thread["waits"]:
            inner = wait["frames"][0]["function"] if wait["frames"] else ""
            key = (wait["kind"], wait["type"], inner)
            places[key] = places.get(key, 0.0) + wait["wait_s"]
    return places


def _releasing(report: Mapping[str, Any], kind: str) -> set[str]:
    """Return the functions that have ended nearly all of the waits for *kind*."""
    waits = [
        wait
        for thread in report["threads"]
        for wait in thread["waits"]
        if wait["kind"] == kind and wait["sleeps"]
    ]
    known_s = sum(wait["wait_s"] for wait in waits if wait["released_by"])
    assert known_s > 0.99 * sum(wait["wait_s"] for wait in waits)
    return {wait["released_by"][0]["function"] for wait in waits if wait["released_by"]}


def _check_lock(workload: Workload, kind: str, tmp_path: Path) -> None:
    truth, report, text = recorded_locks(workload, tmp_path)

    for tid, known in truth["threads"].items():
        seen = of_thread(report, tid)
        assert known["sleeps"] == seen["sleeps"]
        assert known["slept_ns"] / 1e9 == pytest.approx(seen["slept_s"], rel=_TOLERANCE)
        assert _LEAST_OF_ALL <= seen["wait_s"] * 1e9 / known["wait_ns"] <= 1 + _TOLERANCE
    places = _places(report)
    assert (kind, None, "hold") == max(
        (key for key in places if key[0] != "idle"), key=places.__getitem__
    )
    assert {"hold"} == _releasing(report, kind)
    assert "lost waiting for locks" in text
    assert "released by" in text
    assert f"a threading.{'RLock' if kind == 'rlock' else 'Lock'}" in text


@pytest.mark.parametrize("interpreter", _ALL)
def test_waits_for_a_lock_are_those_of_its_clocks(
    interpreter: Interpreter, sleep_clock: Path, tmp_path: Path
) -> None:
    """
    Sleeps are counted exactly, and time is within 1 %: asleep, and from wanting to having.
    """
    with waits_started(interpreter, sleep_clock, "lock") as workload:
        _check_lock(workload, "lock", tmp_path)


@pytest.mark.parametrize("interpreter", FREE_THREADED[:1])
def test_waits_for_an_rlock_are_told_apart(
    interpreter: Interpreter, sleep_clock: Path, tmp_path: Path
) -> None:
    """
    By the type of the object.
    """
    with waits_started(interpreter, sleep_clock, "rlock") as workload:
        _check_lock(workload, "rlock", tmp_path)


@pytest.mark.parametrize("interpreter", FREE_THREADED)
def test_waits_for_an_object_have_its_type(
    interpreter: Interpreter, sleep_clock: Path, tmp_path: Path
) -> None:
    """
    Two threads that store into a list while a third one sorts it wait for the list.
    """
    with waits_started(interpreter, sleep_clock, "object") as workload:
        truth, report, text = recorded_locks(workload, tmp_path)

    _, *storing = truth["threads"].items()
    for tid, known in storing:
        seen = of_thread(report, tid)
        assert known["sleeps"] == seen["sleeps"]
        # To release the list within the same statement is no wait for it.
        wait_ns = known["wait_ns"] - known["woke_ns"]
        assert _LEAST_OF_ALL <= seen["wait_s"] * 1e9 / wait_ns <= 1 + _TOLERANCE
    places = _places(report)
    assert ("object", "list", "store") == max(
        (key for key in places if key[0] != "idle"), key=places.__getitem__
    )
    assert "the lock of an object (list)" in text


@pytest.mark.parametrize("interpreter", _TWO)
def test_who_waits_for_something_to_do_is_idle(
    interpreter: Interpreter, sleep_clock: Path, tmp_path: Path
) -> None:
    """
    A queue is waited at, and a thread's end: no contention, whatever lock that is made of.
    """
    # Who gives it something to do must not lose the CPU while it has the queue's own lock.
    with waits_started(
        interpreter, sleep_clock, "idle", before=("chrt", "--fifo", "1")
    ) as workload:
        truth, report, _ = recorded_locks(workload, tmp_path)

    (consumer, known), _ = truth["threads"].items()
    assert known["sleeps"] == of_thread(report, consumer)["sleeps"]
    kinds = {kind for kind, _, inner in _places(report) if inner == "Condition.wait"}
    assert {"idle"} == kinds
    (thread,) = (each for each in report["threads"] if each["tid"] == int(consumer))
    slept_s = sum(wait["slept_s"] for wait in thread["waits"] if wait["kind"] == "idle")
    assert known["slept_ns"] / 1e9 == pytest.approx(slept_s, rel=_TOLERANCE)
    # The rest is the time for which it tries before it sleeps.
    assert slept_s < thread["idle_s"] < report["duration_s"]
    assert 0.01 * thread["idle_s"] > thread["wait_s"]


@pytest.mark.parametrize("interpreter", _ORDINARY[:1])
def test_waits_that_are_given_up_count(
    interpreter: Interpreter, sleep_clock: Path, tmp_path: Path
) -> None:
    """
    Each sleep of a thread that never gets the lock is a wait.
    """
    with waits_started(interpreter, sleep_clock, "timeout") as workload:
        truth, report, _ = recorded_locks(workload, tmp_path)

    for tid, known in truth["threads"].items():
        seen = of_thread(report, tid)
        assert known["sleeps"] == seen["sleeps"]
        assert known["slept_ns"] / 1e9 == pytest.approx(seen["slept_s"], rel=_TOLERANCE)
    assert {} == {
        reason: count for reason, count in report["lost_events"].items() if reason != "began_unseen"
    }


@pytest.mark.parametrize("interpreter", FREE_THREADED[:1])
def test_who_is_stopped_knows_who_has_asked_for_it(
    interpreter: Interpreter, sleep_clock: Path, tmp_path: Path
) -> None:
    """
    A thread that computes sleeps for nothing but the end of collections in another one.
    """
    with waits_started(interpreter, sleep_clock, "stops") as workload:
        truth, report, text = recorded_locks(workload, tmp_path)

    _, (computing, known) = truth["threads"].items()
    seen = of_thread(report, computing)
    (thread,) = (each for each in report["threads"] if each["tid"] == int(computing))
    stops = [wait for wait in thread["waits"] if wait["kind"] == "world_stop"]
    assert known["sleeps"] == seen["sleeps"]
    assert seen["slept_s"] == pytest.approx(sum(wait["slept_s"] for wait in stops), rel=_TOLERANCE)
    assert {"collect"} == {wait["released_by"][0]["function"] for wait in stops}
    assert "ended by" in text


@pytest.mark.parametrize("interpreter", FREE_THREADED)
def test_stops_of_the_world_are_counted(
    interpreter: Interpreter, sleep_clock: Path, tmp_path: Path
) -> None:
    """
    Each that made the other thread sleep, and no more than there were; by who collects.

    They are so brief that a thread is at times woken before it has fallen asleep.
    """
    with waits_started(interpreter, sleep_clock, "brief_stops") as workload:
        truth, report, _ = recorded_locks(workload, tmp_path)

    (_, collecting), (computing, known) = truth["threads"].items()
    (thread,) = (each for each in report["threads"] if each["tid"] == int(computing))
    # Who collects takes the interpreter's own mutexes as well, for which the other may sleep.
    slept: dict[str, float] = defaultdict(float)
    for wait in thread["waits"]:
        slept[wait["kind"]] += wait["sleeps"]
    assert known["sleeps"] == sum(slept.values())
    assert {"world_stop"} <= set(slept) <= {"world_stop", "interpreter"}
    (collections,) = (
        each for each in report["world_stops"] if each["frames"][0]["function"] == "collect"
    )
    assert "gc" == collections["cause"]
    # A collection stops the world twice; the second time is mostly over before the thread that has
    # been let go on has run. Some collections begin by themselves.
    assert slept["world_stop"] <= collections["stops"] <= _MOST_STOPS * collecting["waits"]


@pytest.mark.parametrize("interpreter", FREE_THREADED)
def test_what_stops_of_the_world_take_is_told(
    interpreter: Interpreter, sleep_clock: Path, tmp_path: Path
) -> None:
    """
    The other thread sleeps for nearly all of a stop, unless it has no CPU to go to sleep.
    """
    with waits_started(interpreter, sleep_clock, "stops") as workload:
        truth, report, text = recorded_locks(workload, tmp_path)

    (_, collecting), (_, known) = truth["threads"].items()
    took_ns = 1e9 * sum(each["stopping_s"] + each["standing_s"] for each in report["world_stops"])
    assert _LEAST_OF_STOPS * known["slept_ns"] <= took_ns <= collecting["wait_ns"]
    assert "for garbage collection" in text


def _timeline(workload: Workload, tmp_path: Path) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return the slices of the timeline, and the report of the same recording."""
    file, events = tmp_path / "report.json", tmp_path / "events.json"
    arguments = ("--locks", "--overhead-budget", "100%")
    page = tmp_path / "report.html"
    forms = (f"--format=json={file}", f"--format=perfetto={events}", f"--format=html={page}")
    with gilscope_started("record", "-p", str(workload.pid), *arguments, *forms) as recording:
        recording.says("Tracing ")
        workload.run()
        workload.finish()
        outcome = recording.outcome()
    assert 0 == outcome.exit_code, outcome.messages
    (report,) = json.loads(file.read_text())["locks"]
    assert {} == report["lost_events"]
    slices = [event for event in json.loads(events.read_text())["traceEvents"] if "dur" in event]
    return slices, report


@pytest.mark.parametrize("interpreter", _TWO)
def test_timeline_adds_up_to_the_report(
    interpreter: Interpreter, sleep_clock: Path, tmp_path: Path
) -> None:
    """
    Each wait is there by itself, as long as what counts, by thread and kind.
    """
    with waits_started(interpreter, sleep_clock, "lock") as workload:
        slices, report = _timeline(workload, tmp_path)

    drawn_us: dict[tuple[int, str], float] = defaultdict(float)
    for each in slices:
        if each["cat"] in ("lock", "idle"):
            drawn_us[each["tid"] - LOCKS_TID, each["name"].partition(" ")[0]] += each["dur"]
    told_us: dict[tuple[int, str], float] = defaultdict(float)
    for thread in report["threads"]:
        for wait in thread["waits"]:
            told_us[thread["tid"], wait["kind"]] += 1e6 * wait["wait_s"]
    assert {name: pytest.approx(us, abs=1) for name, us in told_us.items()} == drawn_us
    holds = [each for each in slices if each["name"] == "lock"]
    waits = sum(
        wait["waits"]
        for thread in report["threads"]
        for wait in thread["waits"]
        if wait["kind"] == "lock"
    )
    assert waits <= len(holds) <= 1.1 * waits
    assert "hold (lock_waits.py:" in holds[0]["args"]["waiter"][0]


@pytest.mark.parametrize("interpreter", FREE_THREADED[:1])
def test_timeline_has_the_stops_of_the_world(
    interpreter: Interpreter, sleep_clock: Path, tmp_path: Path
) -> None:
    """
    On a track of their own, with who has asked for them.
    """
    with waits_started(interpreter, sleep_clock, "stops") as workload:
        slices, report = _timeline(workload, tmp_path)

    stops = [each for each in slices if each["cat"] == "world_stop"]
    told_s = [
        sum(each[name] for each in report["world_stops"]) for name in ("stopping_s", "standing_s")
    ]
    drawn_s = [
        sum(each["dur"] for each in stops if each["name"].startswith(name)) / 1e6
        for name in ("stopping", "world stands")
    ]
    assert told_s == pytest.approx(drawn_s, abs=1e-6)
    assert {STOPS_TID} == {each["tid"] for each in stops}
    assert {"stopping: gc", "world stands: gc"} == {each["name"] for each in stops}
    assert all(each["args"]["asked"][0].startswith("collect (") for each in stops)
    page = (tmp_path / "report.html").read_text()
    assert "<title>all had stopped for " in page
    assert ", for garbage collection, asked for by collect (lock_waits.py:" in page


@pytest.mark.parametrize("interpreter", FREE_THREADED[:1])
def test_another_attachment_has_a_timeline_of_its_own(
    interpreter: Interpreter, sleep_clock: Path
) -> None:
    """
    What was seen before belongs to sums that have gone, and its places are not known any more.
    """
    account = LockAccount(lambda: LockProbe(begin_loading(timeline=True)))
    with closing(account), waits_started(interpreter, sleep_clock, "lock") as workload:
        account.attach(workload.pid)
        workload.run()
        account.observe()
        first = account.timeline(workload.pid)
        account._end(workload.pid)  # noqa: SLF001 - as where its probes have been lost
        account.attach(workload.pid)
        (seen,) = account.observe()
        second = account.timeline(workload.pid)
        workload.finish()

    assert first is not None
    assert second is not None
    assert 100 < sum(wait.kind is LockKind.LOCK for wait in first.waits)
    assert [] == [wait for wait in second.waits if wait.began_ns < seen.since_ns]


@pytest.mark.parametrize("interpreter", FREE_THREADED[:1])
def test_the_worst_moment_is_chosen_among_a_part_of_many_waits(
    interpreter: Interpreter, sleep_clock: Path, tmp_path: Path
) -> None:
    """
    Two threads that let each other go wait more often than is sent one by one; nothing is lost.
    """
    with waits_started(interpreter, sleep_clock, "relay") as workload:
        page, file = tmp_path / "report.html", tmp_path / "report.json"
        arguments = ("--locks", "--overhead-budget", "100%")
        forms = (f"--format=html={page}", f"--format=json={file}")
        with gilscope_started("record", "-p", str(workload.pid), *arguments, *forms) as recording:
            recording.says("Tracing ")
            workload.run()
            workload.finish()
            assert 0 == recording.outcome().exit_code
    (report,) = json.loads(file.read_text())["locks"]

    assert {} == report["lost_events"]
    assert waits_in(report, "relay") > 8000
    # Whether the moment itself was cut is chance.
    assert re.search(r"In \d+ seconds there were too many waits to look at", page.read_text())


@pytest.mark.parametrize("interpreter", _TWO)
def test_a_lock_that_is_fought_over_costs_no_more_than_the_budget(
    interpreter: Interpreter, sleep_clock: Path, tmp_path: Path
) -> None:
    """
    Two threads that let each other go are seen in windows, the first of them on credit.
    """
    with waits_started(interpreter, sleep_clock, "relay", seconds=_PAID_BACK_S) as workload:
        truth, report, text = recorded_locks(workload, tmp_path, "1%")

    acquires = sum(known["waits"] for known in truth["threads"].values())
    assert 0 < waits_in(report, "relay") < acquires
    assert 0 < report["overhead_s"] < _CREDIT_S + 0.01 * truth["cpu_s"]
    assert 0 < report["observed_s"] < report["duration_s"] / 4
    assert {} == report["lost_events"]
    assert "as the overhead budget allows" in text
