"""What every Python since 2.7 can do: take and release the GIL alone, or fight for it.

bench_any_python.py alone|fight UNITS. Each line on stdin does UNITS units of work, and prints the
CPU time that they took as JSON; before the first, a line says that it is ready.
"""

import json
import os
import resource
import sys
import threading

_COUNT = 200


def alone(units):
    """Release the GIL for a write in each unit, while nobody else wants it."""
    sink = os.open(os.devnull, os.O_WRONLY)
    for _ in range(units):
        sum(range(_COUNT))
        os.write(sink, b"x")
    os.close(sink)


def crunch(units):
    """Compute, and release the GIL when asked only."""
    for _ in range(units):
        sum(range(_COUNT))


def fight(units):
    """Let two threads share the units."""
    threads = [threading.Thread(target=crunch, args=(units // 2,)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def spent_s():
    """Return the CPU time of the process so far."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def main():
    """Serve pieces of work until stdin ends."""
    work, units = {"alone": alone, "fight": fight}[sys.argv[1]], int(sys.argv[2])
    # Before the first thread there is no GIL in CPython 2.7, and a JIT wants to be warm.
    first = threading.Thread(target=work, args=(units,))
    first.start()
    first.join()
    print(json.dumps({"ready": True}))
    sys.stdout.flush()
    while sys.stdin.readline():
        before_s = spent_s()
        work(units)
        print(json.dumps({"cpu_s": spent_s() - before_s}))
        sys.stdout.flush()


if __name__ == "__main__":
    main()
