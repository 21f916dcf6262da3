"""Two threads that fight for the GIL, and one alone, each in a region of gilscope_client.

Known answers, by clocks outside and inside of each region: a thread that never blocks either holds
the GIL or waits for it; one that sleeps holds it for no longer than it is awake, and for as long as
it computes.

The first command is `quick`, or it waits until it is told what it holds. Then `fight` is answered
with what each of two threads has, `alone` with what the main thread has, which computes and sleeps
by turns while nobody else runs.
"""

import sys
import threading
import time

from handshake import next_command, ready, say

from gilscope_client import connect, region

PATIENCE_S = 30.0
FIGHT_NS = 1_500_000_000
COMPUTED_NS = 20_000_000
SLEEP_S = 0.01
TURNS = 10


def compute(ns):
    """Hold the GIL, as far as others let it, for *ns*, and return for how long by the clock."""
    begin_ns = time.monotonic_ns()
    while True:
        now_ns = time.monotonic_ns()
        if now_ns - begin_ns >= ns:
            return now_ns - begin_ns


def fighter(barrier, told):
    """Compute beside another one."""
    barrier.wait()
    compute(FIGHT_NS // 10)
    begin_ns = time.monotonic_ns()
    with region("fight") as one:
        inside_ns = compute(FIGHT_NS)
    told.append([one.held_ns, one.wait_ns, inside_ns, begin_ns, time.monotonic_ns()])


def fight():
    """Return what two threads have."""
    told = []
    barrier = threading.Barrier(2)
    threads = [threading.Thread(target=fighter, args=(barrier, told)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return told


def alone():
    """Return what the main thread has."""
    computed_ns = slept_ns = 0
    outside_ns = time.monotonic_ns()
    with region("alone") as one:
        for _ in range(TURNS):
            computed_ns += compute(COMPUTED_NS)
            begin_ns = time.monotonic_ns()
            time.sleep(SLEEP_S)
            slept_ns += time.monotonic_ns() - begin_ns
    outside_ns = time.monotonic_ns() - outside_ns
    return [one.held_ns, one.wait_ns, computed_ns, outside_ns, slept_ns]


def until_told():
    """Return whether it is told what it holds: not before it has acquired the GIL in full mode."""
    until_s = time.monotonic() + PATIENCE_S
    while time.monotonic() < until_s:
        time.sleep(0.001)
        with region("probe") as one:
            pass
        if one.held_ns is not None:
            return True
    return False


def main():
    """Connect, and do what is asked for."""
    ready()
    begin = next_command()
    connected = connect(PATIENCE_S)
    say({"connected": connected, "told": None if begin == "quick" else until_told()})
    while True:
        command = next_command()
        if command is None:
            sys.exit(0)
        say({command: fight() if command == "fight" else alone()})


if __name__ == "__main__":
    main()
