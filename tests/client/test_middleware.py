"""What requests have waited: in the response, in metrics, and in the trace."""

import asyncio
import sys
from collections.abc import Iterable, Iterator
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from wsgiref.util import setup_testing_defaults

import prometheus_client
import pytest

from gilscope.metrics.client import CLIENT_FAMILIES
from gilscope_client import _request, asgi, wsgi

if TYPE_CHECKING:
    from client.conftest import FakeAgent


class _Span:
    """The span of OpenTelemetry that is current."""

    def __init__(self) -> None:
        self.attributes: dict[str, object] = {}
        self.set_attribute = self.attributes.__setitem__

    def is_recording(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def span(monkeypatch: pytest.MonkeyPatch) -> _Span:
    """There is one, though its package may not be here."""
    made = _Span()
    trace = SimpleNamespace(get_current_span=lambda: made)
    monkeypatch.setitem(sys.modules, "opentelemetry.trace", trace)
    return made


@pytest.fixture(autouse=True)
def registry(monkeypatch: pytest.MonkeyPatch) -> prometheus_client.CollectorRegistry:
    """The application's, which has nothing else."""
    made = prometheus_client.CollectorRegistry()
    histogram = prometheus_client.Histogram

    def registered(*arguments: Any, **options: Any) -> object:
        return histogram(*arguments, **{**options, "registry": made})

    monkeypatch.setattr(prometheus_client, "Histogram", registered)
    monkeypatch.setattr(_request, "_made", [])
    return made


def _observed(
    registry: prometheus_client.CollectorRegistry, name: str = "gilscope_request_gil_wait_seconds"
) -> dict[tuple[str, str], object]:
    return {
        (sample.labels["route"], sample.labels["method"]): sample.value
        for family in registry.collect()
        for sample in family.samples
        if sample.name == f"{name}_sum"
    }


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """What the middleware takes for the time: what is in this list."""
    now = [0.0]
    for module in (asgi, wsgi):
        monkeypatch.setattr(module, "clock_s", lambda: now[0])
    return now


def _answer(application: Any, method: str = "GET") -> tuple[list[tuple[str, str]], bytes]:
    """Return the headers and the body of a WSGI application's response."""
    environ: dict[str, Any] = {"REQUEST_METHOD": method}
    setup_testing_defaults(environ)
    headers: list[tuple[str, str]] = []
    body = application(environ, lambda _status, given: headers.extend(given))
    content = b"".join(body)
    if hasattr(body, "close"):
        body.close()
    return headers, content


def test_wsgi_request_has_its_waits(
    fake_agent: "FakeAgent", registry: prometheus_client.CollectorRegistry, span: _Span
) -> None:
    """
    The header has those up to the beginning of the response, the others all.
    """

    def application(_environ: Any, start_response: Any) -> list[bytes]:
        fake_agent.wait(1_500_000)
        start_response("200 OK", [("A", "b")])
        fake_agent.wait(500_000)
        return [b"body"]

    around = wsgi.Middleware(application, route=lambda environ: environ["PATH_INFO"])

    assert ([("A", "b"), ("Server-Timing", "gil;dur=1.500")], b"body") == _answer(around)
    assert {("/", "GET"): 0.002} == _observed(registry)
    assert {"gilscope.gil_wait_ns": 2_000_000, "gilscope.gil_waits": 2} == span.attributes


def test_wsgi_response_in_pieces(
    fake_agent: "FakeAgent", registry: prometheus_client.CollectorRegistry
) -> None:
    """
    Each is the request's, and what the server waits between them is not.
    """
    closed: list[bool] = []

    class Body:
        def __iter__(self) -> Iterator[bytes]:
            for piece in (b"a", b"b"):
                fake_agent.wait(1_000_000)
                yield piece

        def close(self) -> None:
            fake_agent.wait(3_000_000)
            closed.append(True)

    def application(_environ: Any, start_response: Any) -> Iterable[bytes]:
        start_response("200 OK", [])
        return Body()

    environ: dict[str, Any] = {"REQUEST_METHOD": "BREW"}
    body = wsgi.Middleware(application)(environ, lambda _status, _headers: None)
    for _ in body:
        fake_agent.wait(1_000_000_000)
    body.close()
    body.close()

    assert [True, True] == closed
    assert {("", "other"): 0.005} == _observed(registry)


@pytest.mark.usefixtures("fake_agent")
def test_wsgi_request_takes_its_time(
    registry: prometheus_client.CollectorRegistry, clock: list[float]
) -> None:
    """
    Up to the end of the response.
    """

    def application(_environ: Any, start_response: Any) -> Iterator[bytes]:
        clock[0] += 2
        start_response("200 OK", [])
        yield b"body"
        clock[0] += 3

    _answer(wsgi.Middleware(application))

    assert {("", "GET"): 5.0} == _observed(registry, "gilscope_request_seconds")


@pytest.mark.usefixtures("fake_agent")
def test_asgi_request_takes_its_time(
    registry: prometheus_client.CollectorRegistry, clock: list[float]
) -> None:
    """
    Up to the end of the response.
    """

    async def app(_scope: Any, _receive: Any, _send: Any) -> None:
        clock[0] += 4

    scope = {"type": "http", "method": "GET"}
    asyncio.run(asgi.Middleware(app)(scope, None, None))

    assert {("", "GET"): 4.0} == _observed(registry, "gilscope_request_seconds")


def test_metrics_are_those_of_the_table() -> None:
    """
    Names and texts, which the dashboards and rules know from there.
    """
    assert [(each.name, each.help) for each in CLIENT_FAMILIES] == list(_request.HISTOGRAMS)


def test_wsgi_request_that_fails(
    fake_agent: "FakeAgent", registry: prometheus_client.CollectorRegistry
) -> None:
    """
    Its waits count, and its error is the server's.
    """

    def application(_environ: Any, _start_response: Any) -> list[bytes]:
        fake_agent.wait(1_000_000)
        raise KeyError

    with pytest.raises(KeyError):
        _answer(wsgi.Middleware(application), "POST")

    assert {("", "POST"): 0.001} == _observed(registry)


def test_asgi_requests_have_their_own_waits(
    fake_agent: "FakeAgent", registry: prometheus_client.CollectorRegistry
) -> None:
    """
    Of two that run by turns each has its own.
    """
    sent: list[Any] = []

    async def app(scope: Any, _receive: Any, send: Any) -> None:
        for _ in range(3):
            fake_agent.wait(scope["ns"])
            await asyncio.sleep(0)
        await send({"type": "http.response.start", "status": 200, "headers": [(b"a", b"b")]})
        fake_agent.wait(scope["ns"])
        await send({"type": "http.response.body"})

    async def send(message: Any) -> None:
        sent.append(message)

    def scope(path: str, ns: int) -> dict[str, Any]:
        route = SimpleNamespace(path=path)
        return {"type": "http", "method": "GET", "route": route, "ns": ns}

    async def both() -> None:
        around = asgi.Middleware(app)
        one, other = scope("/one", 1_000_000), scope("/other", 30_000_000)
        await asyncio.gather(around(one, None, send), around(other, None, send))

    asyncio.run(both())

    timings = [dict(message["headers"])[b"server-timing"] for message in sent[::2]]
    assert [b"gil;dur=3.000", b"gil;dur=90.000"] == sorted(timings, key=len)
    assert {("/one", "GET"): 0.004, ("/other", "GET"): 0.12} == _observed(registry)


def test_asgi_lifespan_passes() -> None:
    """
    What is no request is the application's own.
    """
    seen: list[str] = []

    async def app(scope: Any, _receive: Any, _send: Any) -> None:
        seen.append(scope["type"])

    asyncio.run(asgi.Middleware(app)({"type": "lifespan"}, None, None))

    assert ["lifespan"] == seen


def test_without_an_agent_responses_are_as_they_were(
    monkeypatch: pytest.MonkeyPatch, registry: prometheus_client.CollectorRegistry, span: _Span
) -> None:
    """
    No header, no metric, no attribute.
    """
    monkeypatch.setenv("GILSCOPE_REGIONS", "/nowhere")

    def application(_environ: Any, start_response: Any) -> list[bytes]:
        start_response("200 OK", [("A", "b")])
        return [b"body"]

    assert ([("A", "b")], b"body") == _answer(wsgi.Middleware(application))
    assert ({}, {}) == (_observed(registry), span.attributes)
