"""The HTTP side: addresses and answers."""

import gzip
import threading
import urllib.request
from collections.abc import Iterator
from http import HTTPStatus
from urllib.error import HTTPError

import pytest

from gilscope.web.address import parse_address
from gilscope.web.health import Pulse
from gilscope.web.server import Server
from support.recordings.gil import full_mode
from support.reports.scraped import OPEN_METRICS, PLAIN, Fixed


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:9845", ("127.0.0.1", 9845)),
        (":0", ("", 0)),
        ("[::1]:80", ("::1", 80)),
        ("localhost:65535", ("localhost", 65535)),
    ],
)
def test_address_is_host_and_port(text: str, address: tuple[str, int]) -> None:
    """
    The forms that other exporters take.
    """
    assert address == parse_address(text)


@pytest.mark.parametrize("text", ["", "9845", "host:", "host:port", "h:65536", "::1:80", "h:-1"])
def test_anything_else_is_refused(text: str) -> None:
    """
    An error, not a guess.
    """
    with pytest.raises(ValueError, match=r"HOST:PORT|brackets"):
        parse_address(text)


@pytest.fixture
def url() -> Iterator[str]:
    """Serve one process on a port that the kernel chooses."""
    server = Server(("127.0.0.1", 0))
    source = Fixed([full_mode().observation]).source
    thread = threading.Thread(target=server.run, args=(source, Pulse()))
    thread.start()
    yield server.url
    server.stop()
    thread.join()
    server.close()


def test_metrics_are_compressed_for_who_asks(url: str) -> None:
    """
    As Prometheus does; they are the same lines.
    """
    request = urllib.request.Request(f"{url}metrics", headers={"Accept-Encoding": "gzip"})  # noqa: S310
    with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310
        assert "gzip" == answer.headers["Content-Encoding"]
        lines = gzip.decompress(answer.read()).decode().splitlines()
    _, plain = _get(f"{url}metrics")

    # Figures of the agent itself have changed meanwhile.
    assert [line for line in plain.splitlines() if line.startswith("gilscope_gil")] == [
        line for line in lines if line.startswith("gilscope_gil")
    ]


def _get(url: str, accept: str = "") -> tuple[str, str]:
    # S310: the address is the server's own.
    request = urllib.request.Request(url, headers={"Accept": accept})  # noqa: S310
    with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310
        return answer.headers["Content-Type"], answer.read().decode()


def test_metrics_come_in_the_form_that_is_asked_for(url: str) -> None:
    """
    Plain text, or OpenMetrics for those who know it.
    """
    plain_type, plain = _get(f"{url}metrics")
    open_type, opened = _get(f"{url}metrics", OPEN_METRICS)

    assert (PLAIN, OPEN_METRICS) == (plain_type, open_type)
    assert "\n# TYPE gilscope_target_traps_total counter\n" in plain
    assert "\n# TYPE gilscope_target_traps counter\n" in opened


def test_page_tells_about_the_agent_and_its_last_scrape(url: str) -> None:
    """
    Before there was one it is not mentioned.
    """
    _, before = _get(url)
    _get(f"{url}metrics")
    _, after = _get(url)

    assert "<h2>This agent</h2>" in before
    assert [False, True] == ["<dt>last scrape</dt>" in html for html in (before, after)]


@pytest.fixture
def bare_url() -> Iterator[str]:
    """Serve one process without pages."""
    server = Server(("127.0.0.1", 0))
    server.show(Fixed([full_mode().observation]).source, Pulse(), has_pages=False)
    thread = threading.Thread(target=server.answer)
    thread.start()
    yield server.url
    server.stop()
    thread.join()
    server.close()


def test_without_pages_there_are_metrics_and_health(bare_url: str) -> None:
    """
    The same figures as with them.
    """
    _, metrics = _get(f"{bare_url}metrics")
    _, health = _get(f"{bare_url}healthz")

    assert "\ngilscope_targets{" in metrics
    assert "ok\n" == health


@pytest.mark.parametrize("path", ["", "live", "report", "report?last=60", "capture?number=1"])
def test_without_pages_their_paths_say_why(path: str, bare_url: str) -> None:
    """
    404, with what there is instead.
    """
    with pytest.raises(HTTPError) as refused:
        _get(f"{bare_url}{path}")

    with refused.value as answer:
        assert HTTPStatus.NOT_FOUND == answer.code
        assert b"--no-page: it has /metrics and /healthz" in answer.read()
