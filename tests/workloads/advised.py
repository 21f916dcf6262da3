"""A process before and after what a report advises, for its estimates to be held against.

    advised.py turns INTERVAL_S NUMBER
    advised.py spins INTERVAL_S NUMBER
    advised.py calls INTERVAL_S NUMBER
    advised.py places NUMBER [PLACE ...]

Who holds the GIL sleeps in C meanwhile, so that what it costs others hangs on no CPU; but for
`spins`.

`turns`: one thread keeps the GIL and hears a request within 0.2 ms; another one comes back from
NUMBER sleeps, and each time waits for a switch interval and a drop.

`spins`: the same, where the thread that keeps the GIL computes in Python.

`calls`: as in `turns`, where the other thread comes back from NUMBER calls that release the GIL for
20 us and a bit more, and from as many sleeps.

`places`: a thread keeps the GIL NUMBER times at each PLACE, `slow` for 60 ms and `quick` for 40 ms,
and hears no request. Another thread comes back to want it as each hold begins.
"""

import ctypes
import functools
import os
import sys
import threading
import time

from handshake import await_begin, finish, ready

_HELD, _RELEASED = ctypes.PyDLL(None), ctypes.CDLL(None)
_PR_SET_TIMERSLACK = 29
_BRIEF_US, _SHORT_US, _SLOW_US, _QUICK_US = 20, 200, 60_000, 40_000
_NAP_S = 0.005


def keep(ended):
    """Keep the GIL, but drop it when asked."""
    while not ended.is_set():
        _HELD.usleep(_SHORT_US)


def spin(ended):
    """Keep the GIL, and compute."""
    while not ended.is_set():
        pass


def come_back(number, ended):
    """Want the GIL back so often."""
    for _ in range(number):
        time.sleep(_NAP_S)
    ended.set()


def drain(number, ended):
    """Come back from calls that need not release the GIL, and from sleeps that have to."""
    _HELD.prctl(_PR_SET_TIMERSLACK, 1)
    for _ in range(number):
        _RELEASED.usleep(_BRIEF_US)
        time.sleep(_NAP_S)
    ended.set()


def slow(begun):
    """Keep the GIL, with the other thread waiting."""
    _HELD.write(begun, b"x", 1)
    _HELD.usleep(_SLOW_US)


def quick(begun):
    """Do the same for a shorter time."""
    _HELD.write(begun, b"x", 1)
    _HELD.usleep(_QUICK_US)


def call(places, number, begun, answered):
    """Call *places* by turns, each when the other thread sleeps again."""
    for _ in range(number):
        for place in places:
            place(begun)
            os.read(answered, 1)


def answer(number, begun, answered):
    """Come back as each hold begins."""
    for _ in range(number):
        os.read(begun, 1)
        # Nobody wants the GIL just then, and it is not given up.
        _HELD.write(answered, b"x", 1)


def main():
    """Do what the arguments say."""
    kind, first, *rest = sys.argv[1:]
    ended = threading.Event()
    if kind in ("turns", "spins", "calls"):
        other = drain if kind == "calls" else come_back
        sys.setswitchinterval(float(first))
        thread = threading.Thread(target=other, args=(int(rest[0]), ended))
        own = functools.partial(spin if kind == "spins" else keep, ended)
    else:
        begun, answered = os.pipe(), os.pipe()
        places = [{"slow": slow, "quick": quick}[name] for name in rest]
        number = int(first)
        thread = threading.Thread(target=answer, args=(number * len(places), begun[0], answered[1]))
        own = functools.partial(call, places, number, begun[1], answered[0])
    ready()
    await_begin()
    thread.start()
    # By the main thread: it would want the GIL, too, and others would have its request heard.
    own()
    thread.join()
    finish({})


if __name__ == "__main__":
    main()
