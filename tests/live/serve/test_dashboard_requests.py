"""What is told of requests by route, in each way that there is: they agree, and are shown."""

import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from accuracy.truth import Workload, started
from support.commands.gilscope import eventually
from support.commands.json_reports import frames_of, only_process
from support.commands.serve import Service, serving
from support.deploy.dashboards import DASHBOARDS, panel_titled, targets, with_values
from support.prometheus.rules import RULES
from support.prometheus.server import Prometheus, prometheus, scraping
from support.tracing.regions import with_client

pytestmark = [pytest.mark.live, pytest.mark.slow, pytest.mark.beside_others]

_RATE_S, _RANGE_S = 8, 20
_REQUESTS = 30
_FEW = 3
_TOLERANCE = 0.01
_ROUTES = {"/quick", "/slow", "/list"}


@dataclass(frozen=True, slots=True)
class _Shop:
    """A program that serves requests, what traces it, and a Prometheus that scrapes both."""

    workload: Workload
    service: Service
    prometheus: Prometheus

    def serve(self, number: int) -> Mapping[str, Any]:
        """Let so many requests of each route be served by each thread; return what was counted."""
        self.workload.command(str(number))
        return self.workload.answer()

    def report(self) -> dict[str, Any]:
        """Return what the agent says of the process."""
        return only_process(self.service.get("/report?form=json&last=600").text)

    def is_shown(self, title: str, expr: str) -> bool:
        """Whether the panel has an answer for each route, or one for all of them."""
        spans = {"__rate_interval": f"{_RATE_S}s", "__range": f"{_RANGE_S}s"}
        answer = self.prometheus.now(with_values(expr, **spans))
        routes = answer.labels("route")
        assert not answer.warnings, title
        return bool(answer.values()) and routes in ({""}, _ROUTES)


@pytest.fixture(scope="module")
def shop(request: pytest.FixtureRequest) -> Iterator[_Shop]:
    """One whose requests are known to the agent, and to itself."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        python = with_client([sys.executable], folder / "regions.sock")
        workload = stack.enter_context(started(python, "shop_requests.py", request.param))
        service = stack.enter_context(
            serving("-p", str(workload.pid), "--regions", str(folder / "regions.sock"))
        )
        server = stack.enter_context(
            prometheus(
                scraping(f"{service.host}:{service.port}", "gilscope"),
                scraping(f"127.0.0.1:{workload.ready['port']}", "shop"),
                rules=[RULES / "requests.yml"],
            )
        )
        made = _Shop(workload, service, server)
        # Before it is known that the process publishes them, waits are in no request.
        eventually(lambda: made.report()["traces"] is not None)
        assert made.serve(0)["connected"]
        yield made


@pytest.mark.parametrize("shop", ["threads", "pool", "asyncio"], indirect=True)
def test_what_requests_waited_is_the_same_from_inside_and_outside(shop: _Shop) -> None:
    """
    Of each route, by the middleware and by traces; of threads, of a pool, and of an event loop.
    """
    counted = shop.serve(_REQUESTS)["counted"]
    report = shop.report()
    told = {each["route"]: each for each in report["traces"]["routes"]}

    assert _ROUTES == set(told) == set(counted)
    for route, own in counted.items():
        assert 2 * _REQUESTS == own["count"]
        assert own["sum"] == pytest.approx(told[route]["wait_s"], rel=_TOLERANCE)
        assert 0 < told[route]["requests"] <= 2 * _REQUESTS
        frames = frames_of(report, told[route]["holder"])
        assert not frames or "compute" == frames[0]["function"]


@pytest.mark.parametrize("shop", ["threads"], indirect=True)
def test_every_panel_about_requests_has_an_answer(shop: _Shop) -> None:
    """
    With each route, on the page of requests and in the row of the process.
    """
    asked = {name: target["expr"] for name, target in targets(DASHBOARDS["requests"])}
    for title in ("Waited for the GIL, a request, by route", "Threads kept waiting, by route"):
        (target,) = panel_titled(DASHBOARDS["process"], title)["targets"]
        asked[title] = target["expr"]
    for title, expr in asked.items():

        def is_shown(title: str = title, expr: str = expr) -> bool:
            shop.serve(_FEW)
            return shop.is_shown(title, expr)

        eventually(is_shown)


@pytest.mark.parametrize("shop", ["threads"], indirect=True)
def test_rules_record_the_share_of_each_route(shop: _Shop) -> None:
    """
    Most of such a request is waiting.
    """
    for name in ("route:gilscope_request_gil_wait:ratio_rate5m", "route:gilscope_requests:rate5m"):

        def is_recorded(name: str = name) -> bool:
            shop.serve(_FEW)
            return shop.prometheus.now(name).labels("route") == _ROUTES

        eventually(is_recorded)
    shares = shop.prometheus.now("route:gilscope_request_gil_wait:ratio_rate5m").values()
    assert all(0.2 < share <= 1 for share in shares)


@pytest.mark.parametrize("shop", ["threads"], indirect=True)
def test_what_can_be_chosen(shop: _Shop) -> None:
    """
    The service and its routes.
    """
    shop.serve(_FEW)
    selector = "gilscope_request_gil_wait_seconds_count"

    def offered(label: str) -> set[str]:
        return set(shop.prometheus.label_values(label, selector))

    eventually(lambda: _ROUTES == offered("route"))
    assert {"shop"} == offered("job")
    answer = shop.prometheus.now('gilscope_target_info{service="shop"}')
    assert [1.0] == answer.values()
