"""A master that forks workers, each of which contends, and replaces them on command.

Known answer: the master has one thread and never waits for the GIL. Every worker has two threads
that make each other yield until SIGTERM, so that together they wait for about a second a second;
each worker leaves what its threads saw, and the result has one entry for every pid there was.

Commands: `begin` starts the workers' fights, `restart` replaces the oldest worker and answers
{"restarted": {"old": pid, "new": pid}}, `stop` (or the end of stdin) ends them and reports.
A replacement contends at once.
"""

import argparse
import json
import os
import signal
import threading
import time

from crunching import Fight
from handshake import finish, next_command, ready, say

FOREVER = 3600.0


class Worker:
    """One forked worker: its pid, and the pipes to and from it."""

    def __init__(self, others: "list[Worker]") -> None:
        read_report, write_report = os.pipe()
        read_begin, write_begin = os.pipe()
        # Blocked in the child from its first instant, so that no signal is missed.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        self.pid = os.fork()
        if self.pid == 0:
            for fd in (read_report, write_begin, *(other.begin_fd for other in others)):
                os.close(fd)
            work(read_begin, write_report)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
        os.close(write_report)
        os.close(read_begin)
        self.report_fd = read_report
        self.begin_fd = write_begin

    def begin(self) -> None:
        """Let the worker's threads fight."""
        os.write(self.begin_fd, b"\n")

    def stop(self) -> "dict[str, object]":
        """End the worker; return what its threads saw."""
        os.close(self.begin_fd)
        os.kill(self.pid, signal.SIGTERM)
        with os.fdopen(self.report_fd, "rb") as pipe:
            report = json.loads(pipe.read())
        _, status = os.waitpid(self.pid, 0)
        return {"pid": self.pid, "status": status, **report}


def work(begin_fd: int, report_fd: int) -> None:
    """Be a worker: fight from the first byte of *begin_fd* to SIGTERM; never returns."""
    fight = Fight(FOREVER)
    began = 0.0
    if os.read(begin_fd, 1):
        began = time.monotonic()
        fight.start()
        # The threads inherit the blocked signal; sigwait lets go of the GIL.
        signal.sigwait({signal.SIGTERM})
    threads = fight.truth()
    wall_ns = int((time.monotonic() - began) * 1e9) if threads else 0
    os.write(report_fd, json.dumps({"wall_ns": wall_ns, "threads": threads}).encode())
    os._exit(0)


def restart(workers: "list[Worker]", reports: "list[dict[str, object]]") -> None:
    """Replace the oldest worker, as a server does that recycles them."""
    old = workers.pop(0)
    reports.append(old.stop())
    new = Worker(workers)
    new.begin()
    workers.append(new)
    say({"restarted": {"old": old.pid, "new": new.pid}})


def main() -> None:
    """Fork the workers and obey."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    if threading.active_count() != 1:
        raise RuntimeError("the master must have a single thread")
    workers: list[Worker] = []
    for _ in range(options.workers):
        workers.append(Worker(workers))
    reports: list[dict[str, object]] = []
    ready(workers=[worker.pid for worker in workers])
    while True:
        command = next_command()
        if command in (None, "stop"):
            break
        if command == "restart":
            restart(workers, reports)
        else:
            for worker in workers:
                worker.begin()
            say({"begun": len(workers)})
    reports += [worker.stop() for worker in workers]
    finish({"workers": reports})


if __name__ == "__main__":
    main()
