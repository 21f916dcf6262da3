"""Three threads that have the GIL for shares of the time that differ: about 60, 25 and 10 %.

Known answer: the order, `render`, `index`, `poll`. The shares depend on how they share the GIL.
"""

import threading
import time

from handshake import next_command, ready


def compute(seconds: float) -> None:
    end = time.clock_gettime(time.CLOCK_THREAD_CPUTIME_ID) + seconds
    while time.clock_gettime(time.CLOCK_THREAD_CPUTIME_ID) < end:
        sum(range(200))


def render() -> None:
    while True:
        compute(0.012)
        time.sleep(0.004)


def index() -> None:
    while True:
        compute(0.005)
        time.sleep(0.009)


def poll() -> None:
    while True:
        compute(0.002)
        time.sleep(0.013)


for function in (render, index, poll):
    threading.Thread(target=function, daemon=True).start()
ready()
while next_command() is not None:
    pass
