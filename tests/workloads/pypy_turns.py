"""Threads that compute and threads that sleep, on any Python.

Says its pid, waits for a line, and then has them run for so many seconds.
"""

import os
import sys
import threading
import time


def crunch(until_s):
    """Compute, mostly in code that a JIT has made."""
    total = 0
    while time.time() < until_s:
        for number in range(20000):
            total += number * number % 7
    return total


def knock(until_s):
    """Release the GIL again and again."""
    read_end, write_end = os.pipe()
    while time.time() < until_s:
        os.write(write_end, b"x")
        os.read(read_end, 1)
        time.sleep(0.002)


def main():
    """Run them."""
    sys.stdout.write("%d\n" % os.getpid())
    sys.stdout.flush()
    sys.stdin.readline()
    until_s = time.time() + float(sys.argv[1])
    threads = [
        threading.Thread(target=target, args=(until_s,))
        for target in (crunch, crunch, knock, knock)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


main()
