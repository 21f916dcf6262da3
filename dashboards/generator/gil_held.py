"""For which share of the time the GIL is held."""

from dashboards.generator.queries import Query, Scope, Window

from gilscope.metrics import table as metrics

__all__ = ["share_held"]


def share_held(series: Scope, *by: str, span: Window = "$__rate_interval") -> Query:
    """Return the share of the time that a GIL is held, of each group of processes.

    Of several processes it is their mean, and of several GILs in each that of the busiest.
    """
    held = series.rate(metrics.GIL_HELD, *by, "interpreter", span=span, window="all")
    observed = series.rate(metrics.GIL_OBSERVED, *by, span=span, window="all")
    return held.highest(*by).per(observed)
