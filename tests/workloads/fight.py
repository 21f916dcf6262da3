"""Threads wait for the GIL some thousand times a second, from the start until the end of stdin.

Three compute, one returns from a sleep all the time, and the switch interval is short.
"""

import sys
import threading
import time

from handshake import next_command, ready

_INTERVAL_S = 0.0008


def compute() -> None:
    """Compute without end."""
    while True:
        sum(range(500))


def sleep() -> None:
    """Sleep without end, a little at a time."""
    while True:
        time.sleep(0.001)


if __name__ == "__main__":
    sys.setswitchinterval(_INTERVAL_S)
    for work in (compute, compute, compute, sleep):
        threading.Thread(target=work, daemon=True).start()
    ready()
    next_command()
