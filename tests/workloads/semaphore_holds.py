"""Threads that hold the GIL of CPython 2.7 for short and for long, and tell their ids.

Says its pid, waits for a line, and then has them run for so many seconds.
"""

import ctypes
import json
import os
import sys
import threading
import time

import thread

KEEPING = ctypes.PyDLL(None)
tids = {}


def note(name):
    tids[name] = KEEPING.syscall(186)


def crunch(until_s):
    """Compute: a hold ends at each tick, whether anybody waits or not."""
    note(threading.current_thread().name)
    total = 0
    while time.time() < until_s:
        for number in range(1000):
            total += number * number % 7


def keep(until_s):
    """Hold the GIL for milliseconds in C, and release it for less."""
    note("keep")
    while time.time() < until_s:
        KEEPING.usleep(10000)
        time.sleep(0.001)


def quick(until_s):
    """Hold the GIL for 0.2 ms in C, and give up another lock as often, which is none of it."""
    note("quick")
    other = thread.allocate_lock()
    while time.time() < until_s:
        KEEPING.usleep(200)
        with other:
            pass
        time.sleep(0.0001)


def main():
    """Run them."""
    sys.stdout.write("%d\n" % os.getpid())
    sys.stdout.flush()
    sys.stdin.readline()
    sys.setcheckinterval(int(sys.argv[2]))
    until_s = time.time() + float(sys.argv[1])
    threads = [
        threading.Thread(target=target, args=(until_s,), name=name)
        for target, name in ((crunch, "left"), (crunch, "right"), (keep, "keep"), (quick, "quick"))
        if name in sys.argv[3].split(",")
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    sys.stdout.write(json.dumps(tids) + "\n")
    sys.stdout.flush()


main()
