"""One thread that has the GIL for most of the time, and nobody who waits for it.

Known answer: the shares of the time that the thread was in `render`, whose work is all in `json`,
in `spin`, whose work is its own, and asleep, by its own clock. With `--loop` the same work is done
by a coroutine that never awaits while it works.
"""

import asyncio
import json
import select
import sys
import threading
import time

from handshake import finish, ready
from old_asyncio import run_coroutine

ORDERS = [{"id": number, "tags": ["a", "b", "c"]} for number in range(20)]
RENDER_S, SPIN_S, SLEEP_S = 0.012, 0.006, 0.006


def render() -> str:
    return json.dumps(ORDERS, indent=1)


def spin() -> int:
    total = 0
    for number in range(500):
        total += number
    return total


def repeated(work: object, least_s: float) -> float:
    """Call *work* for *least_s* and return how long that took."""
    began_s = time.perf_counter()
    while time.perf_counter() - began_s < least_s:
        work()
    return time.perf_counter() - began_s


def is_over() -> bool:
    return bool(select.select([sys.stdin], [], [], 0)[0])


def work(spent: "dict[str, float]") -> None:
    spent["render"] += repeated(render, RENDER_S)
    spent["spin"] += repeated(spin, SPIN_S)


def plain(spent: "dict[str, float]") -> None:
    while not is_over():
        work(spent)
        time.sleep(SLEEP_S)


async def in_loop(spent: "dict[str, float]") -> None:
    while not is_over():
        work(spent)
        await asyncio.sleep(SLEEP_S)


def main() -> None:
    """Work until there is something to read."""
    spent = {"render": 0.0, "spin": 0.0}
    if sys.version_info < (3, 7):
        # There is no GIL before the first thread is started. This one never wants it again.
        threading.Thread(target=threading.Event().wait, daemon=True).start()
    ready()
    began_s = time.perf_counter()
    if "--loop" in sys.argv:
        run_coroutine(in_loop(spent))
    else:
        plain(spent)
    wall_s = time.perf_counter() - began_s
    sys.stdin.readline()
    finish({name: seconds / wall_s for name, seconds in spent.items()})


if __name__ == "__main__":
    main()
