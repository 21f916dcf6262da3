"""Threads that compute without end, and a main thread that does what it is told.

Known answer: with N threads, N - 1 wait for the GIL at any moment. Each adds to a count of its own
in the file of the first argument, which whoever started the process maps as well: so it is seen to
go on without being asked. Each line of stdin is a JSON string of Python code; the answer has what
the code has put into `result`.
"""

import json
import mmap
import os
import sys
import threading


def work(counts, number, gate=None):
    """Compute and count, as soon as the *gate* is open."""
    if gate:
        gate.wait()
    while True:
        sum(range(2000))
        counts[number] += 1


def end_with_thread(failure):
    """End with a thread that fails: a fault without its threads shows nothing."""
    threading.__excepthook__(failure)
    os._exit(70)


def main():
    """Start the threads and obey."""
    threading.excepthook = end_with_thread
    path, threads = sys.argv[1], int(sys.argv[2])
    with open(path, "r+b") as file:
        counts = memoryview(mmap.mmap(file.fileno(), 0)).cast("Q")
    # Who starts threads would wait for the GIL with all those that compute already.
    gate = threading.Event()
    for number in range(threads):
        threading.Thread(target=work, args=(counts, number, gate), daemon=True).start()
    gate.set()
    sys.stdout.write(json.dumps({"ready": True, "pid": os.getpid()}) + "\n")
    sys.stdout.flush()
    scope = {"counts": counts, "work": work}
    while True:
        line = sys.stdin.readline()
        if not line:
            os._exit(0)
        scope["result"] = None
        exec(json.loads(line), scope)
        sys.stdout.write(json.dumps({"done": True, "result": scope["result"]}) + "\n")
        sys.stdout.flush()


main()
