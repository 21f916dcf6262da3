"""Requests in spans of ddtrace, which publishes them for readers outside of the process.

Known answer: after some seconds `spans` has each trace with its only span. Two threads run
`checkout`, and wait for `refresh_prices` inside of spans alone, but for a moment between two.
"""

import os
import threading
import time

os.environ.update(
    DD_TRACE_OTEL_CTX_ENABLED="true",
    DD_TRACE_AGENT_URL="http://127.0.0.1:1",
    DD_INSTRUMENTATION_TELEMETRY_ENABLED="false",
    DD_REMOTE_CONFIGURATION_ENABLED="false",
)

from ddtrace.trace import tracer
from handshake import await_begin, finish, ready

_SECONDS = 3
_ENDS = threading.Event()
spans: "dict[str, str]" = {}


def refresh_prices() -> None:
    """Compute."""
    while not _ENDS.is_set():
        sum(range(100_000))


def checkout() -> None:
    """Serve requests that come back from blocking calls."""
    while not _ENDS.is_set():
        with tracer.trace("checkout") as span:
            spans["%032x" % span.trace_id] = "%016x" % span.span_id
            for _ in range(3):
                time.sleep(0.001)


threads = [threading.Thread(target=each) for each in (refresh_prices, checkout, checkout)]
ready()
await_begin()
for thread in threads:
    thread.start()
time.sleep(_SECONDS)
_ENDS.set()
for thread in threads:
    thread.join()
finish({"spans": spans})
