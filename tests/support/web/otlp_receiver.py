"""A receiver of OTLP over HTTP, which notes what it gets; read by OpenTelemetry's own messages."""

import gzip
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import Queue

from google.protobuf import json_format
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric

__all__ = ["Received", "Receiver", "metrics_in", "receiving", "request_in"]


def request_in(body: bytes) -> ExportMetricsServiceRequest:
    """Return the request that *body* is, in JSON; raises what is not as in its messages."""
    request = ExportMetricsServiceRequest()
    json_format.Parse(body, request)
    return request


def metrics_in(request: ExportMetricsServiceRequest) -> Mapping[str, Metric]:
    """Return the metrics of *request* by name: of one resource and one scope."""
    (resource,) = request.resource_metrics
    (scope,) = resource.scope_metrics
    return {metric.name: metric for metric in scope.metrics}


@dataclass(frozen=True)
class Received:
    """One request."""

    path: str
    headers: Mapping[str, str]
    """By their names in small letters."""
    body: bytes
    """Not compressed any more."""

    @property
    def request(self) -> ExportMetricsServiceRequest:
        """It as one of metrics in JSON; raises where it is none."""
        return request_in(self.body)


@dataclass
class Receiver:
    """What has come, and what is answered."""

    url: str
    received: Queue[Received] = field(default_factory=Queue)
    answer: tuple[int, bytes] = (200, b"{}")


@contextmanager
def receiving() -> Iterator[Receiver]:
    """Receive on a port of the loopback until the block has ended."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers["Content-Encoding"] == "gzip":
                body = gzip.decompress(body)
            headers = {name.lower(): value for name, value in self.headers.items()}
            receiver.received.put(Received(self.path, headers, body))
            status, answer = receiver.answer
            self.send_response(status)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its base has that name
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        receiver = Receiver(f"http://127.0.0.1:{server.server_port}")
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield receiver
        finally:
            server.shutdown()
            thread.join()
