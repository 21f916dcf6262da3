"""A prefork server: one process forks many workers, which are nearly always idle.

Each has two threads that compute for a moment, together, once in so many seconds. All end at the
end of stdin.
"""

import argparse
import ctypes
import os
import signal
import sys
import threading
import time
from pathlib import Path

# The folder of the workloads, for the way in which they talk.
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "workloads"))

from handshake import next_command, ready  # type: ignore[import-not-found]

_PR_SET_PDEATHSIG = 1
_SUMS = 20


def main() -> None:
    """Fork the workers, say ready, and end when told."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("workers", type=int)
    parser.add_argument("--period", type=float, default=10.0)
    options = parser.parse_args()
    for _ in range(options.workers):
        if os.fork() == 0:
            _work(options.period)
    ready(units=0)
    while next_command() is not None:
        pass


def _work(period_s: float) -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    for _ in range(2):
        threading.Thread(target=_compute, args=(period_s,), daemon=True).start()
    while True:
        signal.pause()


def _compute(period_s: float) -> None:
    while True:
        # Both threads of a worker wake at the same moment, every worker at its own.
        time.sleep(period_s - (time.monotonic() + os.getpid() * 0.037) % period_s)
        for _ in range(_SUMS):
            sum(range(1000))


if __name__ == "__main__":
    main()
