"""Shows gilscope at work on a program that suffers from the convoy effect.

Starts the program (an echo server thread beside two threads that compute) and a client that times
its echoes, records it, prints the report, and leaves ``gilscope serve`` running on it.
"""

import argparse
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

__all__ = ["GILSCOPE", "HOST", "convoy", "ending", "free_port", "page", "say"]

_ROOT = Path(__file__).resolve().parents[1]
_WORKLOADS = _ROOT / "tests" / "workloads"
# The distribution's own build: stripped, optimised, nothing prepared for tracing.
_TARGET_PYTHON = "/usr/bin/python3"
GILSCOPE = (sys.executable, "-m", "gilscope")
HOST = "127.0.0.1"
_PORT = 9845
_LOOK_S = 0.2
_PATIENCE_S = 60.0
_RECORD_S = 5
_ECHOES = 200
_CORES = 2
"""An echo and a thread that computes, at the same time."""


def main() -> int:
    """Run the demonstration and return its exit code."""
    options = _parse_arguments()
    stopped = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopped.set())
    say("First the plain facts: echoes of 8 KiB, without and with two threads that compute.")
    _check_cores()
    _compare()
    if stopped.is_set():
        return 0
    with convoy() as pid:
        say(f"Now gilscope records that server, process {pid}, for {_RECORD_S} seconds.")
        record = (*GILSCOPE, "record", "-p", str(pid), "-d", str(_RECORD_S))
        code = subprocess.run(record, check=False).returncode
        if code or stopped.is_set():
            return code
        say("From here on `gilscope serve` watches it, as it would in production.")
        return _serve(pid, options, stopped)


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Show gilscope at work.")
    parser.add_argument(
        "--seconds", type=float, help="end after so many seconds of serving; default: at Ctrl-C"
    )
    parser.add_argument(
        "--listen", help=f"where to serve; default: port {_PORT} of the loopback if it is free"
    )
    return parser.parse_args()


def _check_cores() -> None:
    """Say what else may make the echoes slow."""
    cores = len(os.sched_getaffinity(0))
    busy = os.getloadavg()[0]
    if cores < _CORES or busy > cores:
        print(
            f"{cores} core(s), of which others have lately kept {busy:.1f} busy: threads wait for "
            "those too. The echoes show that as well, gilscope's figures do not.",
            file=sys.stderr,
        )


def _compare() -> None:
    client = (_TARGET_PYTHON, str(_WORKLOADS / "convoy_client.py"))
    subprocess.run(
        (*client, "--compare", "--echoes", str(_ECHOES)), check=True, stdout=subprocess.DEVNULL
    )


@contextlib.contextmanager
def convoy() -> Iterator[int]:
    """Run the program and its client; yields the program's process id."""
    command = (_TARGET_PYTHON, str(_WORKLOADS / "convoy.py"), "--client")
    # A process group of its own: Ctrl-C is for the demonstration, which ends the rest in order.
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
    ) as server:
        try:
            ready = server.stdout.readline() if server.stdout else b"{}"
            yield int(json.loads(ready)["pid"])
        finally:
            server.terminate()


def _serve(pid: int, options: argparse.Namespace, stopped: threading.Event) -> int:
    listen = options.listen or f"{HOST}:{free_port(_PORT)}"
    command = (*GILSCOPE, "serve", "-p", str(pid), "--listen", listen)
    with subprocess.Popen(command, start_new_session=True) as agent:
        watcher = threading.Thread(target=lambda: (agent.wait(), stopped.set()), daemon=True)
        watcher.start()
        while page(f"http://{listen}/healthz") is None and not stopped.wait(_LOOK_S):
            pass
        if not stopped.is_set():
            say(
                f"Open http://{listen}/ in a browser, or http://{listen}/report for all that is "
                f"known of the last minutes. {ending(options.seconds)}"
            )
        stopped.wait(options.seconds)
        agent.terminate()
        code = agent.wait()
        watcher.join()
    # It may not have come so far as to end by itself when it is told to.
    return 0 if code == -signal.SIGTERM else code


def page(url: str) -> bytes | None:
    """Return what is at *url*; None where nobody answers."""
    try:
        with urllib.request.urlopen(url, timeout=_PATIENCE_S) as answer:  # noqa: S310 - http, ours
            content: bytes = answer.read()
            return content
    except (urllib.error.URLError, ConnectionError):
        return None


def free_port(wanted: int) -> int:
    """Return *wanted*, or any other port of the loopback where that is taken."""
    for port in (wanted, 0):
        with contextlib.suppress(OSError), socket.create_server((HOST, port)) as listener:
            return int(listener.getsockname()[1])
    raise OSError(f"no port of {HOST} is free")


def ending(seconds: float | None) -> str:
    """Return how the run will end."""
    return "Ctrl-C ends it." if seconds is None else f"It ends after {seconds:g} seconds."


def say(text: str) -> None:
    """Tell the user what happens."""
    print(f"\n--- {text}\n", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
