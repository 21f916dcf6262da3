"""Keeps the GIL in a C function for a given time at each command, while other threads wait.

Known answer: the line after each command has the times, in seconds since 1970, at which the call
began and at which it was over. Each waiter comes back from a sleep of a millisecond again and
again, so it waits from a millisecond after the beginning at the latest.
"""

import argparse
import ctypes
import threading
import time

from handshake import next_command, ready, say


def wait() -> None:
    """Come back from a blocking call again and again."""
    while True:
        time.sleep(0.001)


def main() -> None:
    """Hold at each command, until the end of standard input."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=2.0)
    options = parser.parse_args()
    hold = ctypes.PyDLL(None).usleep
    for _ in range(options.threads):
        threading.Thread(target=wait, daemon=True).start()
    ready()
    while next_command() is not None:
        began_s = time.time()
        hold(round(options.seconds * 1e6))
        say({"began_s": began_s, "ended_s": time.time()})


if __name__ == "__main__":
    main()
