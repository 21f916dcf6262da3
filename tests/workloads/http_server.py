"""A threaded HTTP server under load from clients in a process of their own.

Known answer: each unit is one request, answered with 200: about a millisecond of JSON and regular
expressions, a read of a file, a pause as for a database, and what http.server does itself. Every
request does the same work, so differences in CPU time and latency between rounds are the cost of
probes. --concurrency clients wait for their answer before they ask again, each on a connection
that stays open, so each has a thread of its own here and no thread begins or ends in a round.

Each line on stdin runs one round; its result has the CPU time of this process alone, and what the
clients saw: `requests_per_s`, `p50_ns`, `p99_ns`, `max_ns` of the latency, and `failures`.
With --serve-only there are no clients, and stdin says only when to end; the ready line has `port`.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from socketserver import ThreadingMixIn

from handshake import next_command, ready, say
from old_pythons import perf_counter_ns
from rounds import cpu_ns

CLIENTS = Path(__file__).resolve().parent / "http_load.py"
PAUSE_S = 0.0005
WORDS = re.compile(r"\b(\w)(\w*?)(\d+)\b")
ORDERS = json.dumps(
    [{"id": number, "name": "item%d of order%d" % (number, number * 7)} for number in range(480)]
)


def compute() -> bytes:
    """Decode a document, rewrite its texts, and encode it again."""
    orders = json.loads(ORDERS)
    for order in orders:
        order["name"] = WORDS.sub(r"\3-\1\2", order["name"])
    return json.dumps(orders, sort_keys=True).encode()


class Handler(BaseHTTPRequestHandler):
    """Answers every GET in the same way."""

    protocol_version = "HTTP/1.1"
    # Headers and body leave in one segment, without waiting for an acknowledgement.
    wbufsize = -1
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        """Compute, block for a moment, and send the result."""
        body = compute()
        with open(__file__, "rb") as file:
            file.read(512)
        time.sleep(PAUSE_S)
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


class Server(ThreadingMixIn, HTTPServer):
    """One thread for each connection, as `ThreadingHTTPServer` of 3.7 is made."""

    daemon_threads = True


def serve() -> int:
    """Serve on a free port of the loopback in the background; return the port."""
    server = Server(("127.0.0.1", 0), Handler)
    # The socket listens already.
    threading.Thread(target=server.serve_forever, name="accept", daemon=True).start()
    return server.server_address[1]


class Clients:
    """The load generator, seen through its pipes."""

    def __init__(self, port: int, options: "argparse.Namespace") -> None:
        command = [sys.executable, str(CLIENTS), "--port", str(port)]
        command += ["--requests", str(options.units), "--concurrency", str(options.concurrency)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.pid = self._answer()["pid"]

    def _answer(self) -> "dict[str, int]":
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit("the clients ended with exit code %d" % self._process.wait())
        return json.loads(line)

    def run(self) -> "dict[str, int]":
        """Let them send their requests; return what they saw."""
        self._process.stdin.write(b"\n")
        self._process.stdin.flush()
        return self._answer()

    def end(self) -> None:
        """Let them end."""
        self._process.stdin.close()
        self._process.wait()


def serve_rounds(clients: "Clients", units: int, **facts: int) -> None:
    """Run a round for every command, until the end of stdin."""
    clients.run()
    ready(units=units, **facts)
    while next_command() is not None:
        wall_before_ns, cpu_before_ns = perf_counter_ns(), cpu_ns()
        seen = clients.run()
        spent_ns = cpu_ns() - cpu_before_ns
        wall_ns = perf_counter_ns() - wall_before_ns
        own = {"units": units, "cpu_ns": spent_ns, "cpu_ns_per_unit": spent_ns / units}
        say({**seen, **own, "done": True, "wall_ns": wall_ns})


def main() -> None:
    """Serve until the end of stdin."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--units", type=int, default=200, help="requests of a round")
    parser.add_argument("--concurrency", type=int, default=8)
    parser.add_argument("--serve-only", action="store_true", help="without clients")
    options = parser.parse_args()
    port = serve()
    if options.serve_only:
        ready(port=port)
        while next_command() is not None:
            pass
    else:
        clients = Clients(port, options)
        serve_rounds(clients, options.units, port=port, load_pid=clients.pid)
        clients.end()
    os._exit(0)


if __name__ == "__main__":
    main()
