"""Where the waits of a request go: the response, the application's metrics, and its trace."""

import sys
import time

__all__ = ["HISTOGRAMS", "clock_s", "observe", "server_timing"]

HISTOGRAMS = (
    ("gilscope_request_gil_wait_seconds", "What requests have waited for the GIL."),
    ("gilscope_request_seconds", "How long requests have taken whose waits for the GIL are known."),
)
_BUCKETS = (0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
_METHODS = frozenset(
    ("CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE")
)
_MS_DIGITS = 3
_made = []

# 2.7 has no other.
clock_s = getattr(time, "monotonic", time.time)


def server_timing(sums):
    """Return the value of the header Server-Timing for Sums, None where they are not known."""
    return "gil;dur=%.*f" % (_MS_DIGITS, sums.wait_ns / 1e6) if sums.is_known else None


def observe(sums, route, method, took_s):
    """Add what a request of *route* has waited to its metrics and its trace, as far as known."""
    if not sums.is_known:
        return
    try:
        # A client may send any word.
        known = method if method in _METHODS else "other"
        for histogram, value_s in zip(_histograms(), (sums.wait_ns / 1e9, took_s)):  # noqa: B905
            histogram.labels(route, known).observe(value_s)
        trace = sys.modules.get("opentelemetry.trace")
        if trace is not None:
            span = trace.get_current_span()
            if span.is_recording():
                span.set_attribute("gilscope.gil_wait_ns", sums.wait_ns)
                span.set_attribute("gilscope.gil_waits", sums.waits)
    except Exception:  # noqa: S110 - nothing that goes wrong here is the program's
        pass


def _histograms():
    """Return those in the registry of the application's prometheus_client, none without that."""
    if "prometheus_client" not in sys.modules:
        return []
    if not _made:
        from prometheus_client import Histogram  # noqa: PLC0415 - it may not be there

        # Where two threads come at once one of them fails, and observes the next time.
        labels = ("route", "method")
        _made.extend([Histogram(name, text, labels, buckets=_BUCKETS) for name, text in HISTOGRAMS])
    return _made
