"""Requests: what the GIL costs each route, as services with gilscope-client measure themselves."""

from dashboards.generator.layout import Line, Section
from dashboards.generator.limits import LONG_WAIT, ROUTE_SHARE
from dashboards.generator.panels import Column, Curve, curves, figure, listing
from dashboards.generator.queries import Scope
from grafana_foundation_sdk.models import units

from gilscope.metrics.client import REQUEST_GIL_WAIT, REQUEST_TIME
from gilscope.metrics.table import Family

__all__ = ["VARIABLES", "sections"]

VARIABLES: dict[str, Family] = {"route": REQUEST_GIL_WAIT}

_SERIES = Scope(tuple(VARIABLES))
_SHOWN = 10
_LEGEND = "{{method}} {{route}}"
_ROUTE = ("route", "method")
_NONE = "No request. Does a service use the middleware of gilscope-client, and is it scraped?"


def sections() -> list[Section]:
    """Return what is on the page."""
    return [
        Section("Over all routes", (_figures(),)),
        Section("By route", (_routes(), _since_when())),
    ]


def _figures() -> Line:
    share = _SERIES.seconds(REQUEST_GIL_WAIT).per(_SERIES.seconds(REQUEST_TIME))
    mean = _SERIES.seconds(REQUEST_GIL_WAIT).per(_SERIES.count(REQUEST_GIL_WAIT))
    return Line(
        4,
        (
            figure(
                "Share of the requests' time",
                "Of all the time that requests take, they wait for the GIL in this part. So much "
                "faster would they be with a GIL of their own.",
                units.PercentUnit,
                share,
                empty=_NONE,
                steps=ROUTE_SHARE,
            ),
            figure(
                "Waited for the GIL, a request",
                "The mean. Tails are longer: see the table below.",
                units.Seconds,
                mean,
                empty=_NONE,
                steps=LONG_WAIT,
            ),
            figure(
                "Requests a second",
                "Those whose waits are known.",
                units.CountsPerSecond,
                _SERIES.count(REQUEST_GIL_WAIT),
                empty=_NONE,
            ),
        ),
    )


def _routes() -> Line:
    waited = _SERIES.seconds(REQUEST_GIL_WAIT, *_ROUTE, span="$__range")
    took = _SERIES.seconds(REQUEST_TIME, *_ROUTE, span="$__range")
    number = _SERIES.count(REQUEST_GIL_WAIT, *_ROUTE, span="$__range")
    late = _SERIES.quantile(0.99, REQUEST_GIL_WAIT, *_ROUTE, span="$__range")
    return Line(
        9,
        (
            listing(
                "Routes, over the time range",
                "The route at the top loses the largest part of its time. Which code holds the GIL "
                "meanwhile says the Process dashboard, and for single requests the traces.",
                {"route": "route", "method": "method"},
                (
                    Column("share of its time", waited.per(took), units.PercentUnit, ROUTE_SHARE),
                    Column("waited, a request", waited.per(number), units.Seconds, LONG_WAIT),
                    Column("p99 of that", late, units.Seconds, LONG_WAIT),
                    Column("takes, a request", took.per(number), units.Seconds),
                    Column("requests a second", number, units.CountsPerSecond),
                ),
                empty=_NONE,
            ),
        ),
    )


def _since_when() -> Line:
    waited = _SERIES.seconds(REQUEST_GIL_WAIT, *_ROUTE)
    share = curves(
        "Share of a route's time that is waiting for the GIL",
        "A step up tells since when: what was deployed, or what load came, then?",
        units.PercentUnit,
        [Curve(waited.per(_SERIES.seconds(REQUEST_TIME, *_ROUTE)).top(_SHOWN), _LEGEND)],
        empty=_NONE,
    )
    mean = curves(
        "Waited for the GIL, a request, by route",
        "The mean. It grows with the load where threads queue, and does not where one call keeps "
        "the GIL.",
        units.Seconds,
        [Curve(waited.per(_SERIES.count(REQUEST_GIL_WAIT, *_ROUTE)).top(_SHOWN), _LEGEND)],
        empty=_NONE,
    )
    return Line(8, (share, mean))
