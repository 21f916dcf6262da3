"""What gdb runs in its own Python: two threads that compute, until standard input ends.

Known answer: `crunch` keeps the GIL.
"""

import sys
import threading

GOES_ON = threading.Event()


def crunch():
    while not GOES_ON.is_set():
        sum(range(20_000))


def main():
    threads = [threading.Thread(target=crunch) for _ in range(2)]
    for thread in threads:
        thread.start()
    print("ready", flush=True)
    sys.stdin.read()
    GOES_ON.set()
    for thread in threads:
        thread.join()


main()
