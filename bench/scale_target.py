"""One of many processes that are traced at once; what it does costs little, and goes on by itself.

``quiet``: the threads wake together once a second, compute for a moment and sleep again.
``fight``: the same three times a second for some milliseconds, so that they fight for the GIL.
``io``: each thread reads a byte and sleeps, some hundred times a second.
Ends at the end of stdin.
"""

import argparse
import os
import sys
import threading
import time
from pathlib import Path

# The folder of the workloads, for the way in which they talk.
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "workloads"))

from handshake import next_command, ready  # type: ignore[import-not-found]

_UNITS_PER_MS = 100
_QUIET = (1.0, _UNITS_PER_MS // 10)
_FIGHT = (0.33, 7 * _UNITS_PER_MS)
_IO_PAUSE_S = 0.004


def main() -> None:
    """Start the threads, say ready, and end when told."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("kind", choices=("quiet", "fight", "io"))
    parser.add_argument("--threads", type=int, default=8)
    options = parser.parse_args()
    for _ in range(options.threads):
        if options.kind == "io":
            work = threading.Thread(target=_call, daemon=True)
        else:
            rhythm = _QUIET if options.kind == "quiet" else _FIGHT
            work = threading.Thread(target=_compute, args=rhythm, daemon=True)
        work.start()
    ready(units=0)
    while next_command() is not None:
        pass
    os._exit(0)


def _compute(period_s: float, units: int) -> None:
    while True:
        # Every thread of the process wakes at the same moment, every process at its own.
        time.sleep(period_s - (time.monotonic() + os.getpid() * 0.037) % period_s)
        for _ in range(units):
            sum(range(1000))


def _call() -> None:
    fd = os.open("/dev/zero", os.O_RDONLY)
    while True:
        os.read(fd, 1)
        time.sleep(_IO_PAUSE_S)


if __name__ == "__main__":
    main()
