"""Small HTTP servers, alone or beside threads that compute.

``http_servers.py KIND THREADS WORKERS``: `asyncio` (a bare protocol on an event loop), `threads`
(a thread for each connection), `pool` (connections are answered by so many WORKERS), or `tornado`
(its web framework on an event loop, and with WORKERS the answers made by so many). Paths: /json,
/plaintext, and /N for the primes up to N. Says its port.
"""

import asyncio
import json
import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from talk import next_line, say
from tasks import pidigits

GREETING = "Hello, World!"


def primes(limit):
    """Return the primes up to *limit* by trial division, as the source does."""
    found = []
    for number in range(2, limit + 1):
        for divisor in range(2, number):
            if number % divisor == 0:
                break
        else:
            found.append(number)
    return found


def body_of(path):
    if path == "/json":
        return json.dumps({"message": GREETING}).encode()
    if path == "/plaintext":
        return GREETING.encode()
    return json.dumps({"primes": primes(int(path[1:]))}).encode()


def answer(path):
    body = body_of(path)
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)


class Protocol(asyncio.Protocol):
    def connection_made(self, transport):
        self.transport = transport
        self.received = b""

    def data_received(self, data):
        self.received += data
        while b"\r\n\r\n" in self.received:
            head, _, self.received = self.received.partition(b"\r\n\r\n")
            self.transport.write(answer(head.split(None, 2)[1].decode()))


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    pool = None

    def do_GET(self):
        if self.pool is None:
            content = answer(self.path)
        else:
            content = self.pool.submit(answer, self.path).result()
        self.wfile.write(content)

    def log_message(self, *_):
        pass


def serve_loop(told):
    async def serve():
        loop = asyncio.get_running_loop()
        server = await loop.create_server(Protocol, "127.0.0.1", 0)
        told(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(serve())


def serve_tornado(told, workers):
    from tornado.httpserver import HTTPServer
    from tornado.netutil import bind_sockets
    from tornado.web import Application, RequestHandler

    pool = ThreadPoolExecutor(workers, "worker") if workers else None

    class Answering(RequestHandler):
        async def get(self):
            path = self.request.path
            if pool is None:
                self.finish(body_of(path))
            else:
                loop = asyncio.get_running_loop()
                self.finish(await loop.run_in_executor(pool, body_of, path))

    async def serve():
        server = HTTPServer(Application([(".*", Answering)], log_function=lambda _: None))
        sockets = bind_sockets(0, "127.0.0.1")
        server.add_sockets(sockets)
        told(sockets[0].getsockname()[1])
        await asyncio.Event().wait()

    asyncio.run(serve())


def spin():
    while True:
        pidigits()


def start(target, *arguments):
    thread = threading.Thread(target=target, args=arguments, daemon=True)
    thread.start()


def main():
    kind, threads, workers = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    for _ in range(threads):
        start(spin)
    if kind == "asyncio":
        start(serve_loop, lambda port: say(port=port, pid=os.getpid()))
    elif kind == "tornado":
        start(serve_tornado, lambda port: say(port=port, pid=os.getpid()), workers)
    else:
        if kind == "pool":
            Handler.pool = ThreadPoolExecutor(workers, "worker")
        ThreadingHTTPServer.request_queue_size = 128
        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        start(server.serve_forever)
        say(port=server.server_address[1], pid=os.getpid())
    next_line()


if __name__ == "__main__":
    main()
