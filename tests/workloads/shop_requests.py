"""A shop whose requests wait for the GIL beside a thread that computes, and say so in each way.

With the middleware of gilscope_client, in its own metrics, whose port it says; and as the traces
and routes that it publishes for readers outside of it. A command lets two threads serve so many
requests of each of ROUTES, each request in a trace of its own; the answer has what the middleware
counted, by route.
"""

import ctypes
import os
import subprocess
import tempfile
import threading
import time

import prometheus_client
from handshake import next_command, ready, say
from process_context import publish_process_context

from gilscope_client import connect, wsgi

ROUTES = {"/quick": 1, "/slow": 4, "/list": 2}
"""Each with how often a request comes back from a blocking call."""
PATIENCE_S = 30.0
WORKERS = 2


def built(folder):
    """Return the library that publishes, compiled in *folder*."""
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "context_publisher.c")
    path = os.path.join(folder, "publisher.so")
    subprocess.run(["gcc", "-O1", "-shared", "-fPIC", "-o", path, source], check=True)
    return ctypes.PyDLL(path)


def shop(environ, start_response):
    """Answer a request."""
    start_response("200 OK", [])
    for _ in range(ROUTES[environ["PATH_INFO"]]):
        time.sleep(0.0005)
    return [b""]


APPLICATION = wsgi.Middleware(shop, route=lambda environ: environ["PATH_INFO"])


def serve(library, route, number):
    """Serve one request, and publish which it is meanwhile."""
    library.publish_as(number.to_bytes(16, "big"), number.to_bytes(8, "big"))
    library.add_attribute(1, route.encode())
    environ = {"REQUEST_METHOD": "GET", "PATH_INFO": route}
    APPLICATION(environ, lambda _status, _headers: None)
    library.withdraw()


def work(library, first, number):
    """Serve *number* requests of each route, with ids from *first* on."""
    for at in range(number):
        for place, route in enumerate(ROUTES):
            serve(library, route, first + at * len(ROUTES) + place)


def counted():
    """Return what the middleware has counted: seconds and requests by route."""
    found = {}
    for family in prometheus_client.REGISTRY.collect():
        for sample in family.samples:
            if sample.name in (
                "gilscope_request_gil_wait_seconds_sum",
                "gilscope_request_gil_wait_seconds_count",
            ):
                of_route = found.setdefault(sample.labels["route"], {})
                of_route[sample.name.rsplit("_", 1)[1]] = sample.value
    return found


def compute(over):
    """Compute until it is *over*."""
    while not over.is_set():
        sum(range(10_000))


def main():
    """Serve as commands say."""
    with tempfile.TemporaryDirectory() as folder:
        library = built(folder)
    context = publish_process_context("shop", ("thread.name", "http.route"))
    server, _ = prometheus_client.start_http_server(0, "127.0.0.1")
    ready(port=server.server_port)
    over, first = threading.Event(), 1
    threading.Thread(target=compute, args=(over,), daemon=True).start()
    while True:
        command = next_command()
        if command is None:
            break
        connected = connect(PATIENCE_S)
        number = int(command)
        threads = []
        for _ in range(WORKERS):
            threads.append(threading.Thread(target=work, args=(library, first, number)))
            first += number * len(ROUTES)
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        say({"connected": connected, "counted": counted()})
    over.set()
    context.close()
    os._exit(0)


if __name__ == "__main__":
    main()
