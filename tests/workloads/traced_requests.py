"""A thread that waits for the GIL once a round, and publishes which request each round is of.

traced_requests.py [OPTION]... - options are those of the compiler for context_publisher.c.

Known answer: `worker` waits exactly once a round, for as long as the main thread keeps the GIL when
it has seen the worker sleep for it: HOLDS_S. The rounds are of REQUESTS, each a byte of trace and
span; None: nothing is published, and what is negative is published as not valid. Some have a route.

The library is loaded when the first command has come, as a tracing library may be while a program
runs; then each round waits for a command. The first one may be the switch interval; without that it
is far longer than a run, so that nobody is asked to drop the GIL.
"""

import os
import sys
import tempfile
import threading
import time

from handshake import finish, next_command, ready, say
from one_waiter import LIBC, await_read, hold_until_it_waits, opened_syscall
from process_context import publish_process_context
from publisher import built

REQUESTS = ((0xA1, 1), (0xB2, 2), (0xA1, 3), None, (0xC3, 4), (-0xD4, 5))
ROUTES = {0xA1: b"/checkout", 0xB2: b"/" + 100 * b"x"}
SERVICE = "shop"
KEYS = ("thread.name", "http.route")
HOLDS_S = (0.30, 0.25, 0.20, 0.10, 0.35, 0.05)


def worker(library, go, result):
    """Wait for the GIL once a round, in the request that this is of."""
    result["tid"] = LIBC.gettid()
    for request in REQUESTS:
        if request is None:
            library.withdraw()
        else:
            trace, span = request
            library.publish(abs(trace), span, 1 if trace > 0 else 2)
            if trace in ROUTES:
                # Of two the last counts.
                for key, text in ((1, b"/wrong"), (0, b"worker"), (1, ROUTES[trace])):
                    library.add_attribute(key, text)
        os.read(go, 1)
        result["done"] += 1
    os.read(go, 1)


def main():
    """Play the rounds."""
    ready()
    command = next_command()
    if command is None:
        os._exit(1)
    sys.setswitchinterval(float(command or 10))
    with tempfile.TemporaryDirectory() as folder:
        library = built(folder, *sys.argv[1:])
    # It stays for as long as this is kept.
    context = publish_process_context(SERVICE, KEYS)
    result = {"done": 0, "tid": 0}
    theirs, ours = os.pipe()
    thread = threading.Thread(target=worker, args=(library, theirs, result), daemon=True)
    thread.start()
    while not result["tid"]:
        time.sleep(0.001)
    syscall = opened_syscall(result["tid"])
    say({"loaded": True})
    for number, held_s in enumerate(HOLDS_S):
        next_command()
        await_read(syscall)
        hold_until_it_waits(ours, syscall, held_s)
        while result["done"] <= number:
            time.sleep(0.001)
        say({"round": number})
    finish({"tid": result["tid"], "holds_s": HOLDS_S})
    context.close()


main()
