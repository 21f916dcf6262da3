"""What threads do with locks: have them to themselves, or want the same one.

bench_locks.py WORK UNITS. Each line on stdin does UNITS units of work, and prints the CPU time and
the time that they took as JSON; before the first, a line says that it is ready.
"""

import gc
import json
import sys
import threading
import time

_BESIDE = 200
"""What a thread computes between two uses of what it shares."""


def alone(units: "int") -> None:
    """Use a Lock, a list and a dict that nobody else wants."""
    lock, items, table = threading.Lock(), [], {}
    for number in range(units):
        with lock:
            items.append(number)
        table[number & 255] = number


def _store(table: "dict[int, int]", units: "int") -> None:
    for number in range(units):
        table[number & 255] = number


def one_dict(units: "int") -> None:
    """Let two threads store into one dict, and do nothing else."""
    table: "dict[int, int]" = {}
    _both(_store, table, units)


def _take(lock: "threading.Lock", units: "int") -> None:
    for _ in range(units):
        with lock:
            sum(range(_BESIDE))
        sum(range(_BESIDE))


def one_lock(units: "int") -> None:
    """Let two threads take one Lock, and keep it for half of their time."""
    _both(_take, threading.Lock(), units)


def _collect(stop: "threading.Event") -> None:
    while not stop.wait(0.002):
        gc.collect()


def collections(units: "int") -> None:
    """Compute, while another thread stops the world some hundred times a second."""
    stop = threading.Event()
    other = threading.Thread(target=_collect, args=(stop,))
    other.start()
    for _ in range(units):
        sum(range(_BESIDE))
    stop.set()
    other.join()


def _both(work: "object", shared: "object", units: "int") -> None:
    threads = [threading.Thread(target=work, args=(shared, units // 2)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def main() -> None:
    """Serve pieces of work until stdin ends."""
    works = {work.__name__: work for work in (alone, one_dict, one_lock, collections)}
    work, units = works[sys.argv[1]], int(sys.argv[2])
    # What was there at the start is no part of a collection.
    gc.freeze()
    work(units // 10)
    print(json.dumps({"ready": True}), flush=True)
    while sys.stdin.readline():
        before_s, began_s = time.process_time(), time.perf_counter()
        work(units)
        spent = {"cpu_s": time.process_time() - before_s, "s": time.perf_counter() - began_s}
        print(json.dumps(spent), flush=True)


if __name__ == "__main__":
    main()
