"""Keeps the GIL of a PyPy by what PyPy does for itself, while another thread wants it.

The first argument says what that is. The answer says which share of the time garbage was collected,
and which of it was compiled, by PyPy's own clocks. For Python 2.7 as well.
"""

import gc
import itertools
import json
import os
import sys
import threading
import time

import pypyjit

_CONTAINERS = 600000
_TIMES = 4
"""Round a loop, of which the first two make PyPy compile it."""
_SOURCE = "def run(times):\n    total = %d\n    for each in range(times):\n" + "".join(
    "        total = (total * %d + each) & 0xFFFF\n" % number for number in range(2, 300)
).replace("%", "%%")
_NUMBERS = itertools.count()
_LONG = 3000000
_HEAP = [[number] for number in range(_CONTAINERS)]


def translate():
    """Run code that has never been there before, so that PyPy compiles it."""
    made = {}
    exec(_SOURCE % next(_NUMBERS), made)  # noqa: S102 - it is made here
    made["run"](_TIMES)


def collect():
    """Collect garbage, because somebody asks for it."""
    gc.collect()


def allocate():
    """Make so many containers that PyPy collects garbage by itself."""
    return [[number] * 10 for number in range(20000)]


def compute():
    """Run a loop that has been compiled long since."""
    total = 0
    for number in range(_LONG):
        total += number * number % 7
    return total


def keep(hold):
    """Do it until the end, and release the GIL in between.

    PyPy gives it away after 10,000 bytecodes, which thousands of collections would not reach.
    """
    while not _ENDS.is_set():
        began = time.time()
        hold()
        _INSIDE_S[0] += time.time() - began
        time.sleep(0.001)


def wait():
    """Come back from a blocking call again and again."""
    while not _ENDS.is_set():
        time.sleep(0.001)


def trace_a_sleep():
    """Sleep in a loop that PyPy follows meanwhile, to compile it."""
    while not _ENDS.is_set():
        made = {}
        exec(_SLEEP, made)  # noqa: S102 - it is made here
        made["sleep"](time.sleep)


_SLEEP = "def sleep(call):\n    for each in range(4):\n        call(0.1)\n"
_REASONS = {
    "translate": (translate, [wait]),
    "collect": (collect, [wait]),
    "allocate": (allocate, [wait]),
    "compute": (compute, [wait]),
    "beside": (compute, [wait, trace_a_sleep]),
}


def own_work_s():
    """Return for how long PyPy has collected and compiled so far."""
    times = pypyjit.get_stats_snapshot().counter_times
    compiled_s = sum(times.get(each, 0.0) for each in ("TRACING", "BACKEND"))
    return gc.get_stats().total_gc_time / 1000.0, compiled_s


def say(**message):
    """Write one JSON line."""
    os.write(1, json.dumps(message).encode() + b"\n")


_ENDS = threading.Event()
_INSIDE_S = [0.0]
_hold, _others = _REASONS[sys.argv[1]]
for _ in range(3):
    _hold()
if sys.argv[1] in ("translate", "beside"):
    pypyjit.set_param("threshold=2,function_threshold=1000")
_threads = [threading.Thread(target=keep, args=(_hold,))]
_threads += [threading.Thread(target=each) for each in _others]
_before = own_work_s()
for _thread in _threads:
    _thread.start()
say(ready=True, pid=os.getpid(), python=sys.version.split()[0])
os.read(0, 1)
_ENDS.set()
for _thread in _threads:
    _thread.join()
_after = own_work_s()
say(
    done=True,
    collected=(_after[0] - _before[0]) / _INSIDE_S[0],
    compiled=(_after[1] - _before[1]) / _INSIDE_S[0],
)
os.read(0, 1)
