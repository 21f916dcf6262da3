"""Where the waits of a request go: the response, the application's metrics, and its trace."""

import sys

__all__ = ["METRIC", "observe", "server_timing"]

METRIC = "gilscope_request_gil_wait_seconds"

_HELP = "What requests have waited for the GIL."
_BUCKETS = (0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
_METHODS = frozenset(
    ("CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE")
)
_MS_DIGITS = 3
_made = {}


def server_timing(sums):
    """Return the value of the header Server-Timing for Sums, None where they are not known."""
    return "gil;dur=%.*f" % (_MS_DIGITS, sums.wait_ns / 1e6) if sums.is_known else None


def observe(sums, route, method):
    """Add what a request of *route* has waited to its metrics and its trace, as far as known."""
    if not sums.is_known:
        return
    try:
        histogram = _histogram()
        if histogram is not None:
            # A client may send any word.
            known = method if method in _METHODS else "other"
            histogram.labels(route, known).observe(sums.wait_ns / 1e9)
        trace = sys.modules.get("opentelemetry.trace")
        if trace is not None:
            span = trace.get_current_span()
            if span.is_recording():
                span.set_attribute("gilscope.gil_wait_ns", sums.wait_ns)
                span.set_attribute("gilscope.gil_waits", sums.waits)
    except Exception:  # noqa: S110 - nothing that goes wrong here is the program's
        pass


def _histogram():
    """Return the histogram in the registry of the application's prometheus_client, if it has it."""
    if "prometheus_client" not in sys.modules:
        return None
    if METRIC not in _made:
        from prometheus_client import Histogram  # noqa: PLC0415 - it may not be there

        # Where two threads come at once one of them fails, and observes the next time.
        _made[METRIC] = Histogram(METRIC, _HELP, ("route", "method"), buckets=_BUCKETS)
    return _made[METRIC]
