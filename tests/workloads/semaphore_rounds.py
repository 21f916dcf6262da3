"""Waits for the lock of CPython 2.7, each of them made by a handshake.

Known answer, with ticks put off (`sys.setcheckinterval`), so that nobody gives the GIL away by
itself, on threads by their tids:

* `unseen`: it waits since before the first command, once only. Nothing of it is counted but
  that it had begun unseen.
* `waiter`: exactly ROUNDS waits, each behind `hold`, called by `rounds` in the main thread, each
  after a blocking call, and longer than 5 ms. In each it is woken for nothing exactly VAIN times.
  `rounds` has the clock on both sides of each of them: the program reads it before the waiter is
  woken, when the kernel says that it waits, before the release, and when it goes on.
* `other`: waits for another lock, a `thread.lock`, which is freed while nobody has the GIL: it
  waits for the GIL 0 times.
* The main thread, at the second command: MANY calls that release the GIL, while nobody wants it: 0
  traps.
* `left` and `right`: compute side by side, with ticks; whatever they wait comes after a tick.
"""

from __future__ import print_function

import ctypes
import json
import os
import subprocess
import sys
import tempfile

import thread

ROUNDS = 20
VAIN = 3
MANY = 20000
HOLD_NS = 60000000
NEVER = 1000000000
COMPUTE_NS = 600000000
OTHER = 1

_SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "semaphore_rounds.c")


def _started_again():
    """Run this again with the library loaded first, built anew from its source."""
    library = os.path.join(tempfile.mkdtemp(), "semaphore_rounds.so")
    options = ["gcc", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-pthread"]
    options.extend(["-o", library, _SOURCE, "-ldl"])
    subprocess.check_call(options)
    os.environ["LD_PRELOAD"] = os.environ["SEMAPHORE_ROUNDS"] = library
    # As it was started: that may have been by a loader of its own.
    with open("/proc/self/cmdline") as words:
        command = words.read().rstrip("\0").split("\0")
    os.execv(command[0], command)  # noqa: S606


if "SEMAPHORE_ROUNDS" not in os.environ:
    _started_again()

_HOLDING = ctypes.PyDLL(os.environ["SEMAPHORE_ROUNDS"])
_RELEASING = ctypes.CDLL(os.environ["SEMAPHORE_ROUNDS"])
_HOLDING.rounds_now_ns.restype = ctypes.c_int64
_HOLDING.rounds_hold.argtypes = [
    ctypes.c_int,
    ctypes.c_int,
    ctypes.c_int64,
    ctypes.c_int,
    ctypes.POINTER(ctypes.c_int64),
]

tids = {}
ended = []


def say(**message):
    os.write(1, json.dumps(message).encode() + b"\n")


def next_command():
    """Return at the next line; end the process at the end of stdin."""
    while True:
        byte = os.read(0, 1)
        if not byte:
            os._exit(0)
        if byte == b"\n":
            return


def note(name):
    tids[name] = _HOLDING.rounds_tid()


def tell(back):
    # With the GIL, which it keeps until the next blocking call: nobody can make it wait.
    _HOLDING.write(back, b"t", 1)


def hold(wake, until, ns, vain, out):
    _HOLDING.rounds_hold(wake, until, ns, vain, out)


def rounds(wake, back):
    seen = []
    for _ in range(ROUNDS):
        out = (ctypes.c_int64 * 5)()
        hold(wake, -1, HOLD_NS, VAIN, out)
        os.read(back, 1)
        clocks = list(out)
        clocks.append(ended[-1])
        seen.append(clocks)
    return seen


def unseen(wake, back):
    note("unseen")
    os.read(wake, 1)
    tell(back)
    _RELEASING.rounds_park(0)


def waiter(wake, back):
    note("waiter")
    tell(back)
    for _ in range(ROUNDS):
        os.read(wake, 1)
        ended.append(_HOLDING.rounds_now_ns())
        tell(back)
    _RELEASING.rounds_park(0)


def other(lock, go, back):
    note("other")
    tell(back)
    os.read(go, 1)
    lock.acquire()
    _RELEASING.rounds_park(OTHER)


def compute(name, back):
    note(name)
    until_ns = _HOLDING.rounds_now_ns() + COMPUTE_NS
    total = 0
    while _HOLDING.rounds_now_ns() < until_ns:
        for number in range(1000):
            total += number
    tell(back)
    _RELEASING.rounds_park(0)


def main():
    sys.setcheckinterval(NEVER)
    back, back_end = os.pipe()
    wake, wake_end = os.pipe()
    others_wake, others_wake_end = os.pipe()
    lock = thread.allocate_lock()
    lock.acquire()
    thread.start_new_thread(waiter, (wake, back_end))
    os.read(back, 1)
    go, go_end = os.pipe()
    thread.start_new_thread(other, (lock, go, back_end))
    os.read(back, 1)
    thread.start_new_thread(unseen, (others_wake, back_end))
    zero = os.open("/dev/zero", os.O_RDONLY)
    while "unseen" not in tids:
        os.read(zero, 1)
    say(ready=True, pid=os.getpid())
    # It says that the other one waits, and goes on at the first command.
    hold(others_wake_end, 0, 0, 0, (ctypes.c_int64 * 5)())
    os.read(back, 1)
    say(seen=True)
    next_command()
    for _ in range(MANY):
        os.read(zero, 1)
    say(idle=True)
    next_command()
    seen = rounds(wake_end, back)
    _RELEASING.rounds_free_other(go_end, OTHER)
    sys.setcheckinterval(100)
    for name in ("left", "right"):
        thread.start_new_thread(compute, (name, back_end))
    for _ in range(2):
        os.read(back, 1)
    sys.setcheckinterval(NEVER)
    say(done=True, tids=tids, rounds=seen)
    next_command()
    os._exit(0)


if __name__ == "__main__":
    main()
