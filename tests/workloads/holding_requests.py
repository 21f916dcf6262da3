"""A main thread that keeps the GIL for known times, and publishes which request each time is of.

Known answer: each round of ROUNDS is one hold that lasts HELD_S, which nobody interrupts; where a
worker waits for it, it is asked to drop the GIL after a switch interval and does so at its end.
Each round waits for a command.
"""

import os
import tempfile
import threading
import time

from handshake import finish, next_command, ready, say
from one_waiter import LIBC, await_read, hold_until_it_waits, opened_syscall
from process_context import publish_process_context
from publisher import built

# Byte of the trace, and of the span; None: nothing is published. Then: does somebody wait?
ROUNDS = (
    (0xA1, 1, True, 0.30),
    (0xB2, 2, True, 0.20),
    (0xA1, 3, True, 0.10),
    (None, 0, True, 0.25),
    (0xC3, 4, False, 0.40),
    (0xA1, 5, False, 0.15),
)
ROUTES = {0xA1: b"/report"}
KEYS = ("thread.name", "http.route")


def worker(go, result):
    """Wait for the GIL where a round says so."""
    result["tid"] = LIBC.gettid()
    while os.read(go, 1):
        result["done"] += 1


def hold(library, number, ours, syscall):
    """Keep the GIL in the request that the round is of."""
    trace, span, is_waited_for, held_s = ROUNDS[number]
    if trace is None:
        library.withdraw()
    else:
        library.publish(trace, span, 1)
        if trace in ROUTES:
            library.add_attribute(1, ROUTES[trace])
    if is_waited_for:
        hold_until_it_waits(ours, syscall, held_s)
    else:
        LIBC.usleep(int(held_s * 1e6))
    time.sleep(0.001)
    library.withdraw()


def main():
    """Play the rounds."""
    ready()
    if next_command() is None:
        os._exit(1)
    with tempfile.TemporaryDirectory() as folder:
        library = built(folder)
    context = publish_process_context("shop", KEYS)
    result = {"done": 0, "tid": 0}
    theirs, ours = os.pipe()
    threading.Thread(target=worker, args=(theirs, result), daemon=True).start()
    while not result["tid"]:
        time.sleep(0.001)
    syscall = opened_syscall(result["tid"])
    say({"loaded": True})
    for number, (_, _, is_waited_for, _) in enumerate(ROUNDS):
        next_command()
        await_read(syscall)
        before = result["done"]
        hold(library, number, ours, syscall)
        while result["done"] < before + is_waited_for:
            time.sleep(0.001)
        say({"round": number})
    finish({"tid": result["tid"]})
    context.close()


main()
