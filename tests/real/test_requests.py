"""Programs of real frameworks that tell what each request has waited: the recipes of the client."""

import contextlib
import http.client
import json
import os
import re
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from support.commands.gilscope import eventually
from support.commands.serve import Service, serving
from support.paths import AGENT, ROOT
from support.ports import free_port
from support.real.environment import environment

pytestmark = [pytest.mark.live, pytest.mark.beside_others, pytest.mark.slow]

_FOLDER = ROOT / "docs" / "examples" / "requests"
_FEW, _MORE = "requirements.txt", "more_requirements.txt"
_ALL = bool(os.environ.get("GILSCOPE_ALL_PROGRAMS"))
_OPT_IN = pytest.mark.skipif(not _ALL, reason="opt-in: make test-real")
_TIMEOUT_S = 60.0
_START_S = 60.0
_REQUESTS = 40
_AT_ONCE = 4
_SAID = re.compile(r'\{"task".*\}')
_ROUNDED_S = 5e-7
"""In a header."""

_SHOPS = [
    pytest.param(
        "gunicorn --worker-class gthread --threads 4 django_shop:application",
        "/cart/<int:number>",
        _FEW,
        id="django",
    ),
    pytest.param("uvicorn fast_shop:app", "/cart/{number}", _FEW, id="fastapi"),
    pytest.param(
        "gunicorn --worker-class gthread --threads 4 flask_shop:app",
        "/cart/<int:number>",
        _MORE,
        marks=_OPT_IN,
        id="flask",
    ),
]


@contextlib.contextmanager
def _started(line: str, requirements: str, folder: Path, **more: str) -> Iterator[int]:
    """Start the program of *line*, which finds the client and the agent; yield its pid."""
    programs = environment(requirements)
    variables = {
        **os.environ,
        "PATH": f"{programs}:{os.environ['PATH']}",
        "PYTHONPATH": str(AGENT / "client"),
        "GILSCOPE_REGIONS": str(folder / "regions.sock"),
        **more,
    }
    with (
        (folder / "log").open("wb") as log,
        subprocess.Popen(
            line.split(),
            cwd=_FOLDER,
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        ) as process,
    ):
        try:
            yield process.pid
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)


def _get(port: int, path: str) -> tuple[str, str]:
    """Return the body of the page at *path*, and its header Server-Timing."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_TIMEOUT_S)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        assert http.HTTPStatus.OK == answer.status
        return answer.read().decode(), answer.headers.get("Server-Timing", "")
    finally:
        connection.close()


def _answers(port: int) -> bool:
    try:
        return bool(_get(port, "/metrics"))
    except (OSError, http.client.HTTPException):
        return False


def _waited_ms(timing: str) -> float:
    name, _, duration = timing.partition(";dur=")
    assert "gil" == name
    return float(duration)


def _sums(port: int) -> Mapping[tuple[str, str], float]:
    """Return what the application's own metrics say, by name and route."""
    families = text_string_to_metric_families(_get(port, "/metrics")[0])
    return Counter(
        {
            (sample.name, sample.labels["route"]): sample.value
            for family in families
            for sample in family.samples
            if sample.name.startswith("gilscope_") and sample.name.endswith(("_sum", "_count"))
        }
    )


@pytest.mark.parametrize(("line", "route", "requirements"), _SHOPS)
def test_requests_of_a_route_have_their_waits(
    line: str, route: str, requirements: str, tmp_path: Path
) -> None:
    """
    In the response, and in the application's own metrics; beside them a thread computes.
    """
    port = free_port()
    ports = {
        "GUNICORN_CMD_ARGS": f"--bind 127.0.0.1:{port}",
        "UVICORN_PORT": str(port),
    }
    with (
        _started(line, requirements, tmp_path, **ports) as pid,
        serving("-p", str(pid), "--regions", str(tmp_path / "regions.sock")) as service,
    ):
        eventually(lambda: _answers(port), within_s=_START_S)
        # The first requests of a program have no figures: it asks for them, and waits for nothing.
        eventually(lambda: bool(_get(port, "/metrics")[1]), within_s=_START_S)
        before, before_s = _sums(port), _waited_s(service)
        with ThreadPoolExecutor(_AT_ONCE) as clients:
            pages = list(clients.map(lambda _: _get(port, "/cart/2000"), range(_REQUESTS)))
        # The end of a response may be seen before its request has been counted.
        number = "gilscope_request_seconds_count"
        eventually(lambda: _REQUESTS == _sums(port)[number, route] - before[number, route])
        after, after_s = _sums(port), _waited_s(service)

    def gained(name: str) -> float:
        return after[name, route] - before[name, route]

    assert {str(sum(range(2_000_000)))} == {body for body, _ in pages}
    header_s = sum(_waited_ms(timing) for _, timing in pages) / 1000
    waited_s = gained("gilscope_request_gil_wait_seconds_sum")
    assert _REQUESTS == gained("gilscope_request_gil_wait_seconds_count")
    # A response may wait after it has begun.
    assert 0 < header_s <= waited_s + _REQUESTS * _ROUNDED_S
    assert waited_s < gained("gilscope_request_seconds_sum")
    # Others wait as well: what computes beside them, and whoever takes requests in.
    assert waited_s < after_s - before_s


def _waited_s(service: Service) -> float:
    return service.scrape().total("gilscope_gil_thread_wait_seconds_total")


@_OPT_IN
def test_tasks_of_celery_say_what_they_have_waited(tmp_path: Path) -> None:
    """
    Each run by itself.
    """
    line = "celery --app celery_shop worker --pool threads --concurrency 2"
    log = tmp_path / "log"
    with (
        _started(line, _MORE, tmp_path) as pid,
        serving("-p", str(pid), "--regions", str(tmp_path / "regions.sock")),
    ):
        eventually(lambda: 2 == log.read_text().count('{"task"'), within_s=_START_S)
    # The worker's own logger writes before it.
    said = [json.loads(each) for each in _SAID.findall(log.read_text())]

    assert ["add_up", "add_up"] == [each["task"] for each in said]
    assert all(each["wait_ns"] > 0 and each["waits"] > 0 for each in said)
