"""Sums that an extension written in C++ computes in threads, until standard input ends.

Known answer: `weigh` keeps the GIL, in the C++ code of `native_sums` that does not release it.
"""

import sys
import threading

import native_sums

GOES_ON = threading.Event()


def weigh():
    while not GOES_ON.is_set():
        native_sums.summed(50_000_000)


def main():
    threads = [threading.Thread(target=weigh) for _ in range(2)]
    for thread in threads:
        thread.start()
    print("ready", flush=True)
    sys.stdin.read()
    GOES_ON.set()


if __name__ == "__main__":
    main()
