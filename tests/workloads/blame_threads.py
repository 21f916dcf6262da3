"""Threads that Python did not start, and threads that do not live long, at both ends of waits.

Known answer: `edges` in the answers, exactly; a stack without frames is one without Python code.
Every wait lasts for about 12 ms.

* native: a thread that was started in C holds, twice within `called_natively`, where there is no
  frame of threading's below, and three times in C alone; `wait_for_native` waits.
* native_waiter: such a thread waits in C alone, for `keep_native`.
* short_lived: `keep_short_lived` keeps twelve threads waiting, one after the other, each of which
  waits twice and ends.
"""

import ctypes
import threading
from functools import partial

from blame_stage import DROPPING, KEEPING, MS, End, Rounds, no_python, perform, play

HOLD_NS = 12 * MS
CALLBACK = ctypes.CFUNCTYPE(None)
SHORT_LIVED = 12


def called_natively(rounds: "Rounds") -> None:
    for _ in range(2):
        KEEPING.blame_hold(rounds.holds(), HOLD_NS)  # holds here


def start_natively(rounds: "Rounds") -> None:
    DROPPING.blame_native_call(CALLBACK(partial(called_natively, rounds)))
    DROPPING.blame_native_hold(rounds.held_by(no_python()), HOLD_NS, 3)


def wait_for_native(end: "End") -> None:
    while KEEPING.blame_wait(end.waits()):  # waits here
        pass


def keep_native(rounds: "Rounds") -> None:
    for _ in range(3):
        KEEPING.blame_hold(rounds.holds(), HOLD_NS)  # holds here


def wait_natively(end: "End") -> None:
    DROPPING.blame_native_wait(ctypes.byref(end.native))


def wait_twice(end: "End") -> None:
    for _ in range(2):
        KEEPING.blame_wait(end.waits())  # waits here


def keep_short_lived(rounds: "Rounds") -> None:
    for _ in range(SHORT_LIVED):
        thread = threading.Thread(target=wait_twice, args=(rounds.ends[0],))
        thread.start()
        KEEPING.blame_let_go(rounds.address)
        KEEPING.blame_hold(rounds.holds(), HOLD_NS)  # holds here
        KEEPING.blame_keep(rounds.holds(), HOLD_NS)  # holds here
        thread.join()


if __name__ == "__main__":
    perform(
        {
            "native": lambda: play(Rounds(), start_natively, wait_for_native),
            "native_waiter": lambda: play(Rounds(), keep_native, wait_natively),
            "short_lived": lambda: play(Rounds(), keep_short_lived),
        }
    )
