"""A shop whose requests wait for the GIL beside a thread that computes, and say so in each way.

shop_requests.py [threads | pool | asyncio]

With the middleware of gilscope_client, in its own metrics, whose port it says; and as the traces
and routes that it publishes for readers outside of it. A command lets two threads, a pool of two or
an event loop serve so many requests of each of ROUTES, each request in a trace of its own; the
answer has what the middleware counted, by route.
"""

import asyncio
import os
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import prometheus_client
from handshake import next_command, ready, say
from process_context import publish_process_context
from publisher import built

from gilscope_client import asgi, connect, wsgi

ROUTES = {"/quick": 1, "/slow": 4, "/list": 2}
"""Each with how often a request comes back from a blocking call."""
PATIENCE_S = 30.0
WORKERS = 2


def shop(environ, start_response):
    """Answer a request."""
    start_response("200 OK", [])
    for _ in range(ROUTES[environ["PATH_INFO"]]):
        time.sleep(0.0005)
    return [b""]


APPLICATION = wsgi.Middleware(shop, route=lambda environ: environ["PATH_INFO"])


async def shop_of_loop(scope, _receive, send):
    """Answer a request; others run in between."""
    for _ in range(ROUTES[scope["path"]]):
        time.sleep(0.0005)  # noqa: ASYNC251 - a step that waits for the GIL
        await asyncio.sleep(0)
    await send({"type": "http.response.start", "status": 200, "headers": []})


LOOP_APPLICATION = asgi.Middleware(shop_of_loop, route=lambda scope: scope["path"])


class Published:
    """A coroutine of which each step is published as part of a request, as a tracer does."""

    def __init__(self, coroutine, library, request):
        self._coroutine = coroutine
        self._library = library
        self._request = request

    def __await__(self):
        """Run it step by step."""
        steps = self._coroutine.__await__()
        while True:
            publish(self._library, *self._request)
            try:
                awaited = steps.send(None)
            except StopIteration as end:
                return end.value
            finally:
                self._library.withdraw()
            yield awaited


def publish(library, route, number):
    """Publish that this thread serves that request."""
    library.publish_as(number.to_bytes(16, "big"), number.to_bytes(8, "big"))
    library.add_attribute(1, route.encode())


def serve(library, route, number):
    """Serve one request, and publish which it is meanwhile."""
    publish(library, route, number)
    environ = {"REQUEST_METHOD": "GET", "PATH_INFO": route}
    APPLICATION(environ, lambda _status, _headers: None)
    library.withdraw()


async def serve_in_loop(library, route, number):
    """Do so in an event loop."""

    async def send(_message):
        pass

    scope = {"type": "http", "method": "GET", "path": route}
    await Published(LOOP_APPLICATION(scope, None, send), library, (route, number))


def requests(first, number):
    """Yield *number* requests of each route, with ids from *first* on."""
    for at in range(number):
        for place, route in enumerate(ROUTES):
            yield route, first + at * len(ROUTES) + place


def in_threads(library, first, number):
    """Let two threads serve *number* requests of each route."""

    def work(own):
        for request in requests(own, number):
            serve(library, *request)

    threads = [
        threading.Thread(target=work, args=(first + place * number * len(ROUTES),))
        for place in range(WORKERS)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def in_pool(library, first, number):
    """Let a pool of two serve as many altogether."""
    with ThreadPoolExecutor(WORKERS) as pool:
        for request in requests(first, WORKERS * number):
            pool.submit(serve, library, *request)


def in_loop(library, first, number):
    """Let an event loop serve as many, all at once."""

    async def run():
        every = requests(first, WORKERS * number)
        await asyncio.gather(*(serve_in_loop(library, *request) for request in every))

    asyncio.run(run())


WAYS = {"threads": in_threads, "pool": in_pool, "asyncio": in_loop}


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
    way = WAYS[sys.argv[1] if len(sys.argv) > 1 else "threads"]
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
        way(library, first, number)
        first += WORKERS * number * len(ROUTES)
        say({"connected": connected, "counted": counted()})
    over.set()
    context.close()
    os._exit(0)


if __name__ == "__main__":
    main()
