"""Stacks that are more than functions that call each other, at both ends of waits.

Known answer: `edges` in the answers, exactly, but for what is deeper than 32 frames: of that only
the 32 innermost ones are noted. Every wait lasts for about 12 ms.

* generators: `deliver` drives three generators, each of which delegates to the next, and so does
  `collect`; the innermost of the one, `third`, holds while the innermost of the other waits.
* coroutines: tasks of asyncio await three coroutines deep; `leaf` holds, and `block`, which an
  executor's thread runs for a task, waits.
* recursion: `dive` and `wait_deep` call themselves, 25 levels deep and then 100.
* callbacks: `key_of`, called by sorted, a lambda, called by map, `called_back`, called by C code
  through ctypes, and `Trap.__del__`, hold; C functions stand between them and their callers. The
  waiter is called by C code in the same ways.
* encoder: `Kept.default`, which json.dumps calls, holds.
"""

import asyncio
import ctypes
import json

from blame_stage import KEEPING, MS, End, Rounds, perform, play
from old_asyncio import run_coroutine

HOLD_NS = 12 * MS
CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int)
COMPARISON = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int)
)


# Generators.


def first(rounds: "Rounds") -> object:
    yield from second(rounds)


def second(rounds: "Rounds") -> object:
    yield from third(rounds)


def third(rounds: "Rounds") -> object:
    for number in range(3):
        KEEPING.blame_hold(rounds.holds(), HOLD_NS)  # holds here
        yield number


def deliver(rounds: "Rounds") -> None:
    for _ in first(rounds):
        pass


def outer(end: "End") -> object:
    yield from middle(end)


def middle(end: "End") -> object:
    yield from inner(end)


def inner(end: "End") -> object:
    while KEEPING.blame_wait(end.waits()):  # waits here
        yield 1


def collect(end: "End") -> None:
    sum(outer(end))


# Coroutines.


async def leaf(rounds: "Rounds") -> None:
    KEEPING.blame_hold(rounds.holds(), HOLD_NS)  # holds here
    await asyncio.sleep(0)
    KEEPING.blame_hold(rounds.holds(), HOLD_NS)  # holds here


async def branch(rounds: "Rounds") -> None:
    await leaf(rounds)


async def tree(rounds: "Rounds") -> None:
    await branch(rounds)


async def grow(rounds: "Rounds") -> None:
    await asyncio.gather(tree(rounds))


def grow_all(rounds: "Rounds") -> None:
    run_coroutine(grow(rounds))


def block(end: "End") -> None:
    while KEEPING.blame_wait(end.waits()):  # waits here
        pass


async def delegate(end: "End") -> None:
    await asyncio.get_event_loop().run_in_executor(None, block, end)


def run_delegate(end: "End") -> None:
    run_coroutine(delegate(end))


# Recursion.


def dive(rounds: "Rounds", levels: int) -> None:
    if levels == 1:
        KEEPING.blame_hold(rounds.holds(), HOLD_NS)  # holds here
    else:
        dive(rounds, levels - 1)


def wait_deep(end: "End", levels: int) -> None:
    if levels > 1:
        wait_deep(end, levels - 1)
        return
    while KEEPING.blame_wait(end.waits()):  # waits here
        pass


def dive_twice(rounds: "Rounds") -> None:
    dive(rounds, 25)
    dive(rounds, 100)


def wait_25_deep(end: "End") -> None:
    wait_deep(end, 25)


def wait_100_deep(end: "End") -> None:
    wait_deep(end, 100)


# Callbacks.


class Trap:
    """Holds when it goes."""

    def __init__(self, rounds: "Rounds") -> None:
        self._rounds = rounds

    def __del__(self) -> None:
        KEEPING.blame_hold(self._rounds.holds(), HOLD_NS)  # holds here


def key_of(rounds: "Rounds") -> int:
    KEEPING.blame_hold(rounds.holds(), HOLD_NS)  # holds here
    return 0


def called_back(rounds: "Rounds") -> int:
    KEEPING.blame_hold(rounds.holds(), HOLD_NS)  # holds here
    return 0


def call_back(rounds: "Rounds") -> None:
    sorted([rounds, rounds], key=key_of)
    hold = KEEPING.blame_hold
    list(map(lambda ns: hold(rounds.holds(), ns), (HOLD_NS, HOLD_NS)))  # noqa: C417 - holds here
    numbers = (ctypes.c_int * 2)(2, 1)
    # The one sorts with the GIL, the other lets go of it first.
    for library in (ctypes.PyDLL(None), ctypes.CDLL(None)):
        library.qsort(numbers, 2, 4, COMPARISON(lambda *_: called_back(rounds)))
    Trap(rounds)


def wait_in_key(end: "End") -> int:
    while KEEPING.blame_wait(end.waits()):  # waits here
        pass
    return 0


def wait_in_callback(end: "End") -> None:
    callback = CALLBACK(lambda: sorted([end], key=wait_in_key) and 0)
    list(map(lambda function: function(), (callback,)))  # noqa: C417 - C calls it


# Python code of the standard library.


class Kept(json.JSONEncoder):
    """Holds where something cannot be encoded."""

    def default(self, value: object) -> object:
        KEEPING.blame_hold(value.holds(), HOLD_NS)  # holds here
        return 0


def encode(rounds: "Rounds") -> None:
    json.dumps({"values": [rounds, rounds]}, cls=Kept)


def wait_for_encoder(end: "End") -> None:
    while KEEPING.blame_wait(end.waits()):  # waits here
        pass


def play_in_executor() -> "dict[str, object]":
    return play(Rounds(), grow_all, run_delegate)


if __name__ == "__main__":
    perform(
        {
            "generators": lambda: play(Rounds(), deliver, collect),
            "coroutines": play_in_executor,
            "recursion": lambda: play(Rounds(2), dive_twice, wait_25_deep, wait_100_deep),
            "callbacks": lambda: play(Rounds(), call_back, wait_in_callback),
            "encoder": lambda: play(Rounds(), encode, wait_for_encoder),
        }
    )
