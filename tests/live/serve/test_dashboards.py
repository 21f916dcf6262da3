"""Each query of the dashboards, asked of a real Prometheus that scrapes a real agent.

No Grafana is part of this: what it would put into the queries for its variables is put there here.
"""

import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from accuracy.truth import started
from support.commands.gilscope import eventually
from support.commands.serve import serving
from support.deploy.dashboards import (
    DASHBOARDS,
    Json,
    broken,
    panel_titled,
    targets,
    with_values,
)
from support.interpreters.known import FREE_THREADED, Interpreter
from support.paths import WORKLOADS
from support.prometheus.server import Answer, Prometheus, prometheus, scraping
from support.stm_log.program import played_log
from support.tracing.trace import command_of
from support.tracing.transactions import ITM, RPYTHON, built, running

pytestmark = [pytest.mark.live, pytest.mark.slow, pytest.mark.beside_others]

_PYTHON = "/usr/bin/python3"
_CLIENT = WORKLOADS / "convoy_client.py"
_LABELS = {"cluster": "some", "namespace": "shop", "pod": "web-0"}
_JOBS: dict[str, dict[str, str]] = {"labelled": _LABELS, "plain": {}}
_OFFERED = re.compile(r"label_values\((.*), (\w+)\)")
# Grafana's interval of rates is four times that of scrapes, at least.
_RATE_S, _RANGE_S = 8, 20
_SCRAPE_S = 1
_PATIENCE_S = 30.0
_LOG_BYTES = 4096
_OF_CONTAINERS = "Containers, over the time range "
"""Nothing here is in one; see test_container_names.py."""
_OF_CPYTHON_27 = ("Failed wake-ups", "Waited after failed wake-ups")
"""Nothing here is one; the exporter's tests have its series."""
_OF_REQUESTS = ("Waited for the GIL, a request", "Threads kept waiting, by route")
_PAGES = [name for name in DASHBOARDS if name != "requests"]
"""Nothing here tells of requests; see test_dashboard_requests.py."""
_RARE = "Restarts of libitm a second, by reason "
"""So rare that no window may see one: asked of a service that sees all of them."""
_KNOWN = ("--seconds", "300", "--policy", "other")
"""For long, and without real-time priority, which would keep other tests from a processor."""
_LOCK = ("both", "300")
_PYTHONS = ["convoy.py", "known_waits.py", "long_hold.py"]

_GoOn = Callable[[], object]
"""Lets a program that works in rounds do another one."""


@dataclass(frozen=True, slots=True)
class _Watched:
    """A Prometheus that knows the demonstration's server, and others that suffer otherwise."""

    prometheus: Prometheus
    pid: int
    log: str
    rounds: list[_GoOn]

    def ask(self, target: Json, **chosen: str) -> Answer:
        """Return the answer to what a panel asks where *chosen* was chosen."""
        spans = {"__rate_interval": f"{_RATE_S}s", "__range": f"{_RANGE_S}s"}
        expr = with_values(target["expr"], **spans, **chosen)
        if target["instant"]:
            return self.prometheus.now(expr)
        return self.prometheus.over(expr, _RANGE_S)

    def silent(self, dashboard: Json) -> list[str]:
        """Return the queries of *dashboard* that have no answer or a doubtful one."""
        # Where the agent's pod and the like are unknown, as outside of Kubernetes.
        answers = {
            name: self.ask(target, job="plain")
            for name, target in targets(dashboard)
            if not name.startswith((_OF_CONTAINERS, *_OF_CPYTHON_27, *_OF_REQUESTS, _RARE))
        }
        return [name for name, each in answers.items() if each.warnings or not each.values()]

    def is_range_covered(self, selector: str) -> bool:
        """Whether rates of the waits of these threads have each scrape of their range."""
        series = f"gilscope_gil_thread_wait_seconds_total{{{selector}}}"
        counts = self.prometheus.now(f"count_over_time({series}[{_RATE_S}s])").values()
        return bool(counts) and min(counts) >= _RATE_S

    def remain_silent(self, dashboard: Json) -> list[str]:
        """Return the queries that have no good answer although the programs go on for long."""
        deadline_s = time.monotonic() + _PATIENCE_S
        while (names := self.silent(dashboard)) and time.monotonic() < deadline_s:
            for go_on in self.rounds:
                go_on()
            time.sleep(0.5)
        return names


@contextmanager
def _programs(folder: Path, free_threaded: Interpreter) -> Iterator[tuple[list[int], list[_GoOn]]]:
    """Yield the pids of programs that suffer from all that can be seen, and how they go on."""
    with ExitStack() as stack:
        convoy = stack.enter_context(started([_PYTHON], "convoy.py"))
        client = stack.enter_context(
            subprocess.Popen(
                [sys.executable, str(_CLIENT), "--port", str(convoy.ready["port"])],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        )
        stack.callback(client.terminate)
        # Holds of 20 ms, in C, and waits of every kind.
        known = stack.enter_context(started([_PYTHON], "known_waits.py", *_KNOWN))
        known.command()
        # A wait that begins before the probes are there.
        unseen = stack.enter_context(started([_PYTHON], "long_hold.py", "--seconds", "5"))
        unseen.command("hold")
        # It runs without a GIL, its threads queue for a lock, and it collects.
        locked = stack.enter_context(started(command_of(free_threaded), "lock_waits.py", *_LOCK))
        locked.command()
        rpython = stack.enter_context(
            running(built(folder, "rpython", RPYTHON["pie"]), "2", "20", "log")
        )
        itm = stack.enter_context(running(built(folder, "itm", ITM["shared"]), "2", "50", "fight"))
        pids = [convoy.pid, known.pid, unseen.pid, locked.pid, rpython.pid, itm.pid]
        yield pids, [rpython.tell, itm.tell, _growing(folder / "app.log")]


def _growing(log: Path) -> _GoOn:
    """Return what lets an STM log grow."""
    content = played_log("C7", 20_000).content
    blocks = (content[at : at + _LOG_BYTES] for at in range(0, len(content), _LOG_BYTES))

    def grow() -> None:
        with log.open("ab") as file:
            file.write(next(blocks, b""))

    grow()
    return grow


@pytest.fixture(scope="module", params=FREE_THREADED[:1])
def watched(request: pytest.FixtureRequest) -> Iterator[_Watched]:
    """Watch programs until the dashboards have something to show, or for long."""
    with (
        tempfile.TemporaryDirectory() as folder,
        _programs(Path(folder), request.param) as (pids, rounds),
        serving(
            *(f"--pid={pid}" for pid in pids),
            *("--locks", "--stm-log", f"{folder}/app.log"),
            # Windows so long that a few seconds have some of everything.
            *("--overhead-budget", "20%"),
        ) as service,
        prometheus(
            *(
                scraping(f"{service.host}:{service.port}", job, labels)
                for job, labels in _JOBS.items()
            )
        ) as server,
    ):
        found = _Watched(server, pids[0], f"{folder}/app.log", rounds)
        for name in _PAGES:
            found.remain_silent(DASHBOARDS[name])
        yield found


def test_what_is_rare_has_an_answer_too(tmp_path: Path) -> None:
    """
    Where transactions are seen all the time, each restart is there with its reason.
    """
    (target,) = [target for name, target in targets(DASHBOARDS["stm"]) if name.startswith(_RARE)]
    program = built(tmp_path, "itm", ITM["shared"])
    with (
        running(program, "4", "500", "fight", ITM_DEFAULT_METHOD="ml_wt") as itm,
        serving(f"--pid={itm.pid}", "--mode", "full") as service,
        prometheus(scraping(f"{service.host}:{service.port}", "plain")) as server,
    ):
        found = _Watched(server, itm.pid, "", [itm.tell])

        def is_answered() -> bool:
            itm.tell()
            return bool(found.ask(target, job="plain").values())

        eventually(is_answered)
        assert [] == found.ask(target, job="plain").warnings


@pytest.mark.parametrize("name", _PAGES)
def test_every_query_has_an_answer(watched: _Watched, name: str) -> None:
    """
    With values, and without a warning.
    """
    assert [] == watched.remain_silent(DASHBOARDS[name])


@pytest.mark.parametrize(
    ("old", "new"),
    [("pid=~", 'role="nobody", pid=~'), ("sum (", "sam (")],
)
def test_query_without_an_answer_is_found(watched: _Watched, old: str, new: str) -> None:
    """
    Series that nobody exports, and what Prometheus does not understand.
    """
    dashboard = broken()
    (target,) = panel_titled(dashboard, "Threads kept waiting")["targets"]
    target["expr"] = target["expr"].replace(old, new)

    assert ["Threads kept waiting A"] == watched.silent(dashboard)


@pytest.mark.parametrize("name", _PAGES)
def test_variables_offer_what_is_there(watched: _Watched, name: str) -> None:
    """
    The agent's labels, and the names and pids of processes.
    """
    offered = {}
    for variable in DASHBOARDS[name]["templating"]["list"][1:]:
        if variable["name"] == "container_id":
            continue  # see test_container_names.py
        selector, label = _OFFERED.findall(with_values(variable["query"]))[0]
        offered[variable["name"]] = watched.prometheus.label_values(label, selector)

    for label, value in _LABELS.items():
        assert [value] == offered[label]
    assert list(_JOBS) == offered["job"]
    assert 1 == len(offered["instance"])
    programs = {
        "process": _PYTHONS,
        "locks": ["lock_waits.py"],
        "stm": ["itm", "rpython"],
    }.get(name)
    assert programs == offered.get("process")
    assert name != "process" or str(watched.pid) in offered["pid"]
    assert [watched.log] == offered.get("log", [watched.log])


def test_what_is_chosen_is_shown_alone(watched: _Watched) -> None:
    """
    One process of three has the roles that its program starts, and no others.
    """
    (target,) = panel_titled(DASHBOARDS["process"], "Threads kept waiting, by role")["targets"]
    roles = watched.ask(target, pid=str(watched.pid), job="plain").labels("role")

    assert {"crunch", "serve_echo"} == {role.partition(" ")[0] for role in roles} - {"MainThread"}


def test_known_answers(watched: _Watched) -> None:
    """
    The demonstration's threads compute all the time, and its server queues behind them.
    """
    chosen = {"process": "convoy.py", "job": "plain"}
    # A rate is that of its whole range, of which the threads may have been seen for a part only.
    eventually(lambda: watched.is_range_covered('role=~"crunch.*|serve_echo.*", job="plain"'))
    shown = {}
    for title in ("Threads kept waiting", "GIL held", "Convoys in contended returns"):
        (target,) = panel_titled(DASHBOARDS["process"], title)["targets"]
        (shown[title],) = watched.ask(target, **chosen).values()

    assert 1 < shown["Threads kept waiting"] < 3
    # A scrape has the time of its beginning, and is answered when there is a CPU for that.
    (late_s,) = watched.prometheus.now(
        f'max(max_over_time(scrape_duration_seconds{{job="plain"}}[{_RANGE_S}s]))'
    ).values()
    assert 0.3 < shown["GIL held"] <= 1 + late_s / (_RATE_S - _SCRAPE_S)
    assert 0.5 < shown["Convoys in contended returns"] <= 1


def test_labels_of_a_cluster_limit_what_is_shown(watched: _Watched) -> None:
    """
    Two jobs scrape the same agent, and only one of them knows of a cluster.
    """
    (target,) = panel_titled(DASHBOARDS["overview"], "Traced processes")["targets"]

    assert [12.0] == watched.ask(target).values()
    assert [6.0] == watched.ask(target, cluster="some").values()
    assert [] == watched.ask(target, cluster="another").values()
