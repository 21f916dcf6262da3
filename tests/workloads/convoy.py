"""The convoy effect: a server thread that only echoes waits behind threads that only compute.

Known answer: without CPU threads an echo takes some tens of microseconds and nobody waits for the
GIL. With them, and where two cores are free for this process, `serve_echo` wants the GIL back after
each recvfrom and each sendto, and a thread in `crunch` keeps it for a switch interval (5 ms) each
time: most waits of `serve_echo` are convoy waits, held by `crunch`, and an echo takes five
milliseconds or more. The experiment is David Beazley's; the program is not.

On one core, or on two that others keep busy, there is hardly a convoy: nobody runs in the
microseconds for which the GIL is free, so nobody takes it. What the process says at its end tells
whether the answer was to be expected.

Listens on loopback only, on a port that the kernel chooses and the first line of stdout tells.
Runs until SIGINT, SIGTERM or --seconds and exits with 0. `--client` starts convoy_client.py beside
it, which keeps sending and prints the round trip times.
"""

import argparse
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

from handshake import ready

CLIENT = Path(__file__).resolve().parent / "convoy_client.py"
LARGEST_DATAGRAM = 65536
CORES = 2
LEAST_SHARE = 0.95


def crunch(stop: "threading.Event") -> None:
    """Compute until told to stop, without ever letting go of the GIL."""
    while not stop.is_set():
        sum(range(20000))


def serve_echo(server: "socket.socket", stop: "threading.Event") -> None:
    """Send every datagram back to where it came from."""
    while not stop.is_set():
        message, sender = server.recvfrom(LARGEST_DATAGRAM)
        server.sendto(message, sender)


def tell(text: str) -> None:
    """Say on stderr what this process is doing."""
    sys.stderr.write("convoy %d: %s\n" % (os.getpid(), text))
    sys.stderr.flush()


def about_cores(cores: "int", used_s: "float", elapsed_s: "float") -> "str":
    """Return whether the known answer was to be expected, in words.

    *used_s* is the CPU time of the process. Where nothing else runs, threads that compute under one
    GIL get all of the time between them.
    """
    if cores < CORES:
        return "no convoy is to be expected on %d core" % cores
    share = used_s / elapsed_s if elapsed_s > 0 else 0.0
    if share < LEAST_SHARE:
        return "no convoy is to be expected: others left it %d %% of a core" % int(100 * share)
    return "cores were free"


def parse_arguments() -> "argparse.Namespace":
    """Return the command line's options."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cpu-threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, help="run for so long; default: until a signal")
    parser.add_argument("--client", action="store_true", help="start a client, too")
    return parser.parse_args()


def wake(server: "socket.socket") -> None:
    """Let serve_echo return from recvfrom."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as waker:
        waker.sendto(b"", server.getsockname())


def main() -> None:
    """Serve until told to stop."""
    options = parse_arguments()
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind(("127.0.0.1", 0))
    port = server.getsockname()[1]
    threads = [threading.Thread(target=serve_echo, args=(server, stop), name="echo")]
    for number in range(options.cpu_threads):
        name = "cpu-%d" % number
        threads.append(threading.Thread(target=crunch, args=(stop,), name=name))
    for thread in threads:
        thread.start()
    tell("echoes on 127.0.0.1:%d beside %d CPU threads" % (port, options.cpu_threads))
    ready(port=port, cpu_threads=options.cpu_threads)
    client = None
    if options.client:
        client = subprocess.Popen([sys.executable, str(CLIENT), "--port", str(port)])
    began, began_s = os.times(), time.time()
    stop.wait(options.seconds)
    ended, elapsed_s = os.times(), time.time() - began_s
    stop.set()
    if client is not None:
        client.terminate()
        client.wait()
    wake(server)
    for thread in threads:
        thread.join()
    used_s = ended[0] + ended[1] - began[0] - began[1]
    cores = len(os.sched_getaffinity(0))
    if options.cpu_threads:
        tell(about_cores(cores, used_s, elapsed_s))
    tell("done")


if __name__ == "__main__":
    main()
