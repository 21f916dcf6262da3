"""A thread that waits for the GIL once a round, and reads with gilscope_client what it has waited.

Known answer: the thread `worker` waits exactly ROUNDS times, and `rounds` has one wait in each of
as many regions, `all` the sum of them, `none` nothing. It waits nowhere else but, perhaps, while it
begins: it has done so when the first command is answered.

The main thread writes to a pipe that the worker reads, without letting go of the GIL, and keeps it
until the kernel says that the worker sleeps for the GIL's sake. Nobody is made to drop it: the
switch interval is far longer than a run.
"""

import os
import sys
import threading
import time

from handshake import await_begin, next_command, ready, say
from one_waiter import await_read, hold_until_it_waits, opened_syscall

from gilscope_client import connect, region

ROUNDS = 7
PATIENCE_S = 30.0


def figures(one):
    """Return what a region has counted."""
    return [one.waits, one.wait_ns, one.held_ns]


def worker(go, result):
    """Wait for the GIL once a round, in a region inside of a region."""
    result["tid"] = threading.get_native_id()
    rounds = []
    with region("all") as everything:
        for _ in range(ROUNDS):
            with region("round") as one:
                os.read(go, 1)
            rounds.append(figures(one))
            result["done"] += 1
    with region("none") as nothing:
        sum(range(1000))
    result.update(rounds=rounds, all=figures(everything), none=figures(nothing))
    os.read(go, 1)


def begin():
    """Start the worker, and return where it is told to go on, its system call and its result."""
    result = {"done": 0, "tid": 0}
    theirs, ours = os.pipe()
    threading.Thread(target=worker, args=(theirs, result), daemon=True).start()
    while not result["tid"]:
        time.sleep(0.001)
    syscall = opened_syscall(result["tid"])
    await_read(syscall)
    return ours, syscall, result


def play(ours, syscall, result):
    """Play all rounds and return the result."""
    for number in range(ROUNDS):
        await_read(syscall)
        hold_until_it_waits(ours, syscall, 0)
        while result["done"] <= number:
            time.sleep(0.001)
    while "none" not in result:
        time.sleep(0.001)
    os.close(syscall)
    return result


def main():
    """Connect, begin, and play at the next command."""
    sys.setswitchinterval(9)
    ready()
    await_begin()
    is_connected = connect(PATIENCE_S)
    begun = begin()
    say({"connected": is_connected})
    if next_command() is not None:
        say(play(*begun))
        next_command()
    os._exit(0)


if __name__ == "__main__":
    main()
