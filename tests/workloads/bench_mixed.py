"""A realistic mix: two threads that compute and one that does short blocking calls.

Known answer: each unit is one sum over a range of a thousand numbers; the blocking calls are a
fixed number as well, so every round does the same work and differences in CPU time between rounds
are the cost of switching and of probes. Each line on stdin runs one round.
"""

import argparse
import os
import threading
import time

from rounds import serve_rounds

PAUSE_S = 0.0005


def crunch(units: int) -> None:
    """Compute *units* sums."""
    for _ in range(units):
        sum(range(1000))


def call(fd: int, calls: int) -> None:
    """Read a byte and sleep for a moment, *calls* times: two blocking calls each."""
    for _ in range(calls):
        os.read(fd, 1)
        time.sleep(PAUSE_S)


def mix(fd: int, units: int, calls: int) -> None:
    """Do the work of one round."""
    threads = [threading.Thread(target=crunch, args=(units // 2,)) for _ in range(2)]
    threads.append(threading.Thread(target=call, args=(fd, calls)))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def main() -> None:
    """Serve rounds."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--units", type=int, default=100_000)
    parser.add_argument("--calls", type=int, default=50)
    options = parser.parse_args()
    units = options.units // 2 * 2
    fd = os.open("/dev/zero", os.O_RDONLY)
    serve_rounds(lambda: mix(fd, units, options.calls), units)


if __name__ == "__main__":
    main()
