"""How long something takes: each duration and its frequency, and beside that its quantiles."""

from dashboards.generator.layout import Line
from dashboards.generator.panels import Curve, curves, heat
from dashboards.generator.queries import Scope
from grafana_foundation_sdk.models import units

from gilscope.metrics.table import Family

__all__ = ["durations"]

_SHARES = (0.5, 0.9, 0.99)


def durations(series: Scope, title: str, text: str, family: Family, empty: str) -> Line:
    """Return a heatmap of a histogram, and its median and high quantiles over time."""
    quantiles = [
        Curve(series.quantile(share, family), f"{100 * share:g} % are shorter") for share in _SHARES
    ]
    return Line(
        8,
        (
            heat(f"{title}, how long", text, series.buckets(family), empty=empty),
            curves(f"{title}, quantiles", text, units.Seconds, quantiles, empty=empty),
        ),
    )
