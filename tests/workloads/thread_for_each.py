"""A server's way: a thread for each request, which ends with it, beside a thread that computes.

Known answer: each of the 60 threads begins while `main` has the GIL, so that its first wait is in
no Python code; it waits once more in `answer`, after a blocking call, for `main` computes again.
All have ended when the result is written. `role` is what each of them is to be known by.
"""

import _thread
import time

from handshake import await_begin, finish, ready

THREADS = 60
BUSY_S = 0.03


def answer(gate: "_thread.LockType", done: "_thread.LockType") -> None:
    gate.acquire()
    done.release()


def compute() -> None:
    """Have the GIL, but for a moment when another thread has asked for it."""
    until_s = time.perf_counter() + BUSY_S
    while time.perf_counter() < until_s:
        pass


def main() -> None:
    """Start one after the other, and compute until it has ended."""
    ready(role="answer (thread_for_each.py:%d)" % answer.__code__.co_firstlineno)
    await_begin()
    gate, done = _thread.allocate_lock(), _thread.allocate_lock()
    gate.acquire()
    done.acquire()
    for _ in range(THREADS):
        _thread.start_new_thread(answer, (gate, done))
        compute()
        # Neither this nor the start drops the GIL.
        gate.release()
        compute()
        done.acquire()
    finish({"threads": THREADS})


if __name__ == "__main__":
    main()
