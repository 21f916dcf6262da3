"""Starts threads that all have another role, with a name of eight thousand characters.

For each line on standard input that holds a number, so many threads start one after the other, wait
for the GIL behind one that computes, and end; then the number of all so far is written. The names
hold what a terminal would obey.
"""

import json
import os
import sys
import threading
from collections import deque
from time import sleep

functions: "deque" = deque(maxlen=200)
EVIL = "\x1b]0;PWN\x07\x1b[31m\r\u202e"


def compute() -> None:
    """Keep the GIL busy."""
    while True:
        sum(range(2000))


def new_role(number: int) -> "threading.Thread":
    """Return a thread that runs a function of a name and a file that no other has."""
    space: dict = {}
    name = "f" * 4000 + str(number)
    code = compile(
        f"def {name}():\n    for _ in range(3): sum(range(200)); pause(0.0001)\n",
        "d" * 4000 + EVIL + f"/{number}.py",
        "exec",
    )
    exec(code, {"pause": sleep, "sum": sum, "range": range}, space)  # noqa: S102 - its own text
    # Not gone before somebody has read its name.
    functions.append(space[name])
    return threading.Thread(target=space[name], daemon=True)


if __name__ == "__main__":
    sys.setswitchinterval(0.0005)
    threading.Thread(target=compute, daemon=True).start()
    started = 0
    print(json.dumps({"ready": True, "pid": os.getpid()}), flush=True)
    for line in sys.stdin:
        for _ in range(int(line) // 10):
            threads = [new_role(started + at) for at in range(10)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            started += 10
        print(json.dumps({"started": started}), flush=True)
