"""Counts down, several times one after the other or in as many threads. Also for Python 2.7.

Known answer: one after the other nobody waits for the GIL, and in either case nothing is left.

Arguments: ``sequence`` or ``threads``, how many times, and from where to count down. Says its pid;
on a line of stdin it counts, and says what that took by the clock and of CPU time.
"""

import os
import resource
import sys
import threading

from talk import CLOCK, next_line, say

LEFT = []


def count(number):
    while number > 0:
        number -= 1
    LEFT.append(number)


def in_threads(times, number):
    threads = [threading.Thread(target=count, args=(number,)) for _ in range(times)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()


def main():
    order, times, number = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    # A thread before: CPython 2.7 has its lock from then on, and ticks give it away in either case.
    in_threads(1, 1)
    say(pid=os.getpid())
    next_line()
    before, began = resource.getrusage(resource.RUSAGE_SELF), CLOCK()
    if order == "sequence":
        for _ in range(times):
            count(number)
    else:
        in_threads(times, number)
    took, after = CLOCK() - began, resource.getrusage(resource.RUSAGE_SELF)
    say(
        wall_s=took,
        user_s=after.ru_utime - before.ru_utime,
        system_s=after.ru_stime - before.ru_stime,
        left=sum(LEFT),
        counted=len(LEFT) - 1,
    )
    next_line()


if __name__ == "__main__":
    main()
