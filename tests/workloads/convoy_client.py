"""Times 8 KiB echoes from convoy.py, in a process of its own.

With --port: sends for ever (or --rounds times) and prints a line for every --echoes round trips.
With --compare: starts the server twice, without and with CPU threads, and prints both lines; the
server says whether cores were free for that, without which there is hardly a difference.
Lines of stdout are JSON; the same in words goes to stderr.
"""

import argparse
import json
import signal
import socket
import subprocess
import sys
from pathlib import Path

from old_pythons import perf_counter_ns

SERVER = Path(__file__).resolve().parent / "convoy.py"
MESSAGE_BYTES = 8192
TIMEOUT_S = 10.0


def time_echoes(port: int, echoes: int) -> "list[int]":
    """Return the round trip times in nanoseconds, in ascending order."""
    message = bytes(MESSAGE_BYTES)
    round_trips_ns = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.connect(("127.0.0.1", port))
        client.settimeout(TIMEOUT_S)
        for _ in range(echoes):
            began_ns = perf_counter_ns()
            client.send(message)
            client.recv(MESSAGE_BYTES)
            round_trips_ns.append(perf_counter_ns() - began_ns)
    return sorted(round_trips_ns)


def report(port: int, echoes: int, cpu_threads: "int | None") -> None:
    """Time some echoes and print what they took."""
    times_ns = time_echoes(port, echoes)
    figures = {
        "echoes": echoes,
        "cpu_threads": cpu_threads,
        "mean_ns": sum(times_ns) // echoes,
        "median_ns": times_ns[echoes // 2],
        "p90_ns": times_ns[min(echoes - 1, echoes * 90 // 100)],
        "p99_ns": times_ns[min(echoes - 1, echoes * 99 // 100)],
        "max_ns": times_ns[-1],
    }
    sys.stdout.write(json.dumps(figures) + "\n")
    sys.stdout.flush()
    beside = "" if cpu_threads is None else " beside %d CPU threads" % cpu_threads
    sys.stderr.write(
        "%d echoes of 8 KiB%s: p90 %.3f ms, p99 %.3f ms (median %.3f ms, longest %.3f ms)\n"
        % (
            echoes,
            beside,
            figures["p90_ns"] / 1e6,
            figures["p99_ns"] / 1e6,
            figures["median_ns"] / 1e6,
            figures["max_ns"] / 1e6,
        )
    )
    sys.stderr.flush()


def compare(echoes: int, cpu_threads: int) -> None:
    """Print the round trips of a server on its own, and of one with CPU threads beside it."""
    for threads in (0, cpu_threads):
        command = [sys.executable, str(SERVER), "--cpu-threads", str(threads)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as server:
            try:
                port = json.loads(server.stdout.readline())["port"]
                report(port, echoes, threads)
            finally:
                server.terminate()
        if server.returncode != 0:
            raise SystemExit("the server exited with %d" % server.returncode)


def parse_arguments() -> "argparse.Namespace":
    """Return the command line's options."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--port", type=int)
    what.add_argument("--compare", action="store_true")
    parser.add_argument("--echoes", type=int, default=200)
    parser.add_argument("--rounds", type=int, help="lines to print; default: for ever")
    parser.add_argument("--cpu-threads", type=int, default=2)
    return parser.parse_args()


def main() -> None:
    """Do what the command line asks for."""
    options = parse_arguments()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: sys.exit(0))
    if options.compare:
        compare(options.echoes, options.cpu_threads)
        return
    rounds = options.rounds
    while rounds is None or rounds > 0:
        report(options.port, options.echoes, None)
        rounds = None if rounds is None else rounds - 1


if __name__ == "__main__":
    main()
