"""Threads of pure Python that run on while somebody looks: what may be seen, and what never.

Known answer: each stack that is seen is one that this file's calls can make. A function that
stands in line N of its caller is called there, and the outermost frame is that of the thread's
function. Besides:

* convoy: `serve` waits behind `crunch`, most of the time, for it comes back from os.read every
  2 ms; between them they want the GIL all the time.
* calls: `climb` and `ramble` make each other wait, and `nap` waits for both; they call short
  functions all the time, so that a stack can change while it is read.
* encode: `nap` waits behind `encode_all`, which stands in json.dumps: there three functions of
  Python's own call each other, and the innermost calls C.
* pool: `answer` runs in a new thread each time, wants the GIL back once or twice behind `crunch`,
  and is gone.
"""

import json
import os
import threading
import time

from blame_stage import DROPPING, MS, perform

SECONDS = 0.6
VALUES = {"values": [{str(number): [number, "text"]} for number in range(20000)]}


class Run:
    """Is on for a while."""

    def __init__(self) -> None:
        self.is_on = True


def crunch(run: "Run") -> None:
    while run.is_on:  # holds here
        sum(range(2000))  # holds here


def serve(run: "Run") -> None:
    timer = DROPPING.blame_timer(2 * MS)
    while run.is_on:
        os.read(timer, 8)  # waits here
    os.close(timer)


def nap(run: "Run") -> None:
    while run.is_on:
        time.sleep(0.0005)  # waits here


# Short functions.


def climb(run: "Run") -> None:
    while run.is_on:
        left(3)
        right(3)
        for _ in walk(3):
            twig()
        sorted((3, 1, 2), key=rank)


def left(number: int) -> int:
    return twig() + left_leaf(number)


def right(number: int) -> int:
    if number > 0:
        return right(number - 1)
    return right_leaf()


def twig() -> int:
    return 1


def left_leaf(number: int) -> int:
    number += 1
    return number


def right_leaf() -> int:
    return twig()


def walk(number: int) -> object:
    while number > 0:
        yield right_leaf()
        yield from stroll(number)
        number -= 1


def stroll(number: int) -> object:
    yield left_leaf(number)


def rank(number: int) -> int:
    return -number


def ramble(run: "Run") -> None:
    while run.is_on:
        roam(2)
        sum(stray(number) for number in (1, 2))
        Pebble().kick()


def roam(number: int) -> int:
    return stray(number) + linger()


def stray(number: int) -> int:
    return number


def linger() -> int:
    return 2


class Pebble:
    """Is kicked once."""

    def __init__(self) -> None:
        self.place = linger()

    def kick(self) -> None:
        self.place += stray(1)


# The standard library.


def encode_all(run: "Run") -> None:
    while run.is_on:
        json.dumps(VALUES)  # holds here


# Threads that do not live long.


def answer() -> None:
    time.sleep(0.0005)  # waits here
    time.sleep(0.0005)  # waits here


def receive(run: "Run") -> None:
    while run.is_on:
        thread = threading.Thread(target=answer)
        thread.start()
        thread.join()


def run_for_a_while(*functions: object) -> "dict[str, object]":
    """Run each function in a thread of its own."""
    run = Run()
    threads = [threading.Thread(target=function, args=(run,)) for function in functions]
    for thread in threads:
        thread.start()
    time.sleep(SECONDS)
    run.is_on = False
    for thread in threads:
        thread.join()
    return {}


SCENARIOS = {
    "convoy": lambda: run_for_a_while(crunch, serve),
    "calls": lambda: run_for_a_while(climb, ramble, nap),
    "encode": lambda: run_for_a_while(encode_all, nap),
    "pool": lambda: run_for_a_while(crunch, receive),
}


if __name__ == "__main__":
    perform(SCENARIOS)  # in one line: before 3.8 a call stands in the line of its last argument
