"""Locks under ``gilscope serve``: of what has no GIL, and beside one."""

import json

import pytest

from accuracy.truth import spoken_to
from support.commands.gilscope import eventually
from support.commands.serve import serving
from support.interpreters.known import FREE_THREADED, ONE_PER_MINOR, Interpreter
from support.paths import WORKLOADS
from support.tracing.trace import command_of

pytestmark = [pytest.mark.live, pytest.mark.beside_others]

_ORDINARY = [each for each in ONE_PER_MINOR if getattr(each, "id", None) == "debian-3.14"]
_LOCKS = "gilscope_lock_"
_WAIT = "gilscope_lock_wait_seconds_total"
_LEAST_OF_ALL = 0.95
"""Threads that have their lock may lose their CPU before they look at their clock again."""


@pytest.mark.parametrize("interpreter", [*FREE_THREADED[:1], *_ORDINARY])
def test_locks_are_exported_where_they_are_asked_for(interpreter: Interpreter) -> None:
    """
    What threads have lost stays when they have ended, with the lines that waited and released.
    """
    script = [str(WORKLOADS / "lock_waits.py"), "lock", "1.5"]
    with (
        spoken_to([*command_of(interpreter), *script]) as workload,
        serving("-p", str(workload.pid), "--locks", "--overhead-budget", "100%") as service,
    ):
        pid = str(workload.pid)
        eventually(lambda: service.scrape().samples("gilscope_lock_probe_valid", pid=pid))
        first = service.scrape()
        truth = workload.run()["threads"].values()
        last = service.scrape()
        report = json.loads(service.get("/report?form=json&last=600").text)
        page = service.get(f"/report?form=html&last=600&pid={pid}").text
        workload.finish()

    known_s = sum(thread["wait_ns"] for thread in truth) / 1e9
    assert 0 == first.total(_WAIT, kind="lock")
    assert _LEAST_OF_ALL * known_s <= last.total(_WAIT, pid=pid, kind="lock") <= 1.01 * known_s
    assert 1 == last.total("gilscope_lock_probe_valid", pid=pid)
    assert 1 == last.total("gilscope_targets", state="traced")
    (place,) = (
        each.labels
        for each in last.samples("gilscope_lock_blocked_seconds_total", pid=pid, kind="lock")
        if each.labels["waiter"] != "other" and each.labels["releaser"] != "not known"
    )
    assert place["waiter"].startswith("hold (lock_waits.py:")
    assert place["releaser"].startswith("hold (lock_waits.py:")
    (of_locks,) = report["locks"]
    told_s = sum(
        wait["wait_s"]
        for thread in of_locks["threads"]
        for wait in thread["waits"]
        if wait["kind"] == "lock"
    )
    assert _LEAST_OF_ALL * known_s <= told_s <= 1.01 * known_s
    moment = page.partition('<section id="lock-moment">')[2].partition("</section>")[0]
    assert "<h2>The worst 200\N{NO-BREAK SPACE}ms</h2>" in moment
    assert "for a threading.Lock in hold (lock_waits.py:" in moment
    all_s = last.total("gilscope_lock_observed_seconds_total", pid=pid, window="all")
    assert all_s == last.total("gilscope_lock_observed_seconds_total", pid=pid, window="full") > 1


@pytest.mark.parametrize("interpreter", _ORDINARY)
def test_without_being_asked_for_nothing_is_said_of_locks(interpreter: Interpreter) -> None:
    """
    A Python with a GIL is traced for that alone.
    """
    script = [str(WORKLOADS / "lock_waits.py"), "lock", "0.1"]
    with (
        spoken_to([*command_of(interpreter), *script]) as workload,
        serving("-p", str(workload.pid)) as service,
    ):
        eventually(lambda: workload.pid in service.scrape().pids())
        families = service.scrape().families
        workload.run()
        workload.finish()

    assert [] == [
        each for family in families for each in family.samples if each.name.startswith(_LOCKS)
    ]
