"""How these programs answer: JSON lines on stdout, in one system call each. Also for Python 2.7."""

import json
import os
import sys
import time

CLOCK = getattr(time, "perf_counter", time.time)


def say(**facts):
    """Write one line."""
    os.write(1, (json.dumps(facts) + "\n").encode("ascii"))


def next_line():
    """Return the next line of stdin, or an empty one at its end."""
    return sys.stdin.readline()


def at_share(ordered, share):
    """Return the value at or below which *share* of *ordered* lies."""
    if not ordered:
        return 0.0
    rank = -int(-share * len(ordered) // 1)
    return ordered[min(len(ordered), max(1, rank)) - 1]
