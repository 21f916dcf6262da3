"""Exports what the requests of a traced process have waited, by route."""

from collections.abc import Mapping

from gilscope.exporter.samples import Labels, Rows
from gilscope.metrics import table as metrics
from gilscope.model.traces import Traces

__all__ = ["add_routes"]


def add_routes(
    families: Mapping[metrics.Family, Rows], labels: Labels, traces: Traces | None
) -> None:
    """Add the series of the process with *labels*, of the routes that are known."""
    for each in () if traces is None else traces.routes:
        if each.route is not None:
            of_route = (*labels, each.route)
            families[metrics.GIL_ROUTE_WAIT].add_ns(of_route, each.wait_ns)
            families[metrics.GIL_ROUTE_WAITS].add(of_route, each.waits)
            families[metrics.GIL_ROUTE_REQUESTS].add(of_route, each.requests)
