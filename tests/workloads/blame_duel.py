"""Two threads of one interpreter: `rest` waits for `toil`, and `toil` has to yield to it.

blame_interpreters.py runs this in several interpreters at once, each under a file name of its own.
"""

import threading
import time


def toil(until):
    while time.monotonic() < until:  # holds here
        sum(range(2000))  # holds here


def rest(until):
    while time.monotonic() < until:
        time.sleep(0.001)  # waits here


def duel(seconds):
    """Return after so many seconds of it."""
    until = time.monotonic() + seconds
    threads = [threading.Thread(target=function, args=(until,)) for function in (toil, rest)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
