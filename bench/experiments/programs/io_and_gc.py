"""I/O call by call, and collections of garbage, each in a thread called `work`.

``io HOW SIZE CALLS``: HOW is `os.write`, `file.write` (to /dev/null), `os.read` or `file.read`
(from /dev/zero). ``lines HOW PATH``: a file by lines, as `utf-8`, `latin-1` or `binary`.
``gc HOW SECONDS``: lists are made beside a heap of 600,000 containers, with a collection every
100 ms (`collect`), the same with the heap frozen (`freeze`), or without any (`disabled`), while
the thread `tick` wants to run every millisecond. A line of stdin starts it.
"""

import gc
import os
import sys
import threading
import time

from talk import CLOCK, next_line, say

CONTAINERS = 600000


def io(how, size, calls):
    kind, call = how.split(".")
    data = b"x" * size
    path, mode = ("/dev/null", "wb") if call == "write" else ("/dev/zero", "rb")
    with open(path, mode) as file:
        number = file.fileno()
        began_s = CLOCK()
        if how == "os.write":
            for _ in range(calls):
                os.write(number, data)
        elif how == "os.read":
            for _ in range(calls):
                os.read(number, size)
        elif how == "file.write":
            for _ in range(calls):
                file.write(data)
        else:
            for _ in range(calls):
                file.read(size)
        took_s = CLOCK() - began_s
    return {"kind": kind, "calls": calls, "bytes": size * calls, "took_s": took_s}


def lines(how, path):
    options = {"mode": "rb"} if how == "binary" else {"encoding": how}
    began_s = CLOCK()
    count = 0
    with open(path, **options) as file:
        for _ in file:
            count += 1
    return {"calls": count, "bytes": os.path.getsize(path), "took_s": CLOCK() - began_s}


def heap_of(how):
    """Return the heap, made without collections."""
    gc.disable()
    heap = [[] for _ in range(CONTAINERS)]
    if how == "freeze":
        gc.freeze()
    if how != "disabled":
        gc.enable()
    return heap


def collect(how, heap, seconds, over):
    before = sum(each["collections"] for each in gc.get_stats())
    began_s = CLOCK()
    collections = 0
    while CLOCK() - began_s < seconds:
        kept = [[] for _ in range(2000)]
        if how != "disabled" and CLOCK() - began_s > collections * 0.1:
            gc.collect()
            collections += 1
    over.set()
    counted = sum(each["collections"] for each in gc.get_stats()) - before
    return {
        "calls": collections,
        "collections": counted,
        "containers": len(heap) + len(kept),
        "took_s": CLOCK() - began_s,
    }


def tick(begin, over, late_s):
    begin.wait()
    while not over.is_set():
        due_s = CLOCK() + 0.001
        time.sleep(0.001)
        late_s.append(CLOCK() - due_s)


def work(begin, answers, function, arguments):
    begin.wait()
    answers.append(function(*arguments))


def main():
    what, how = sys.argv[1], sys.argv[2]
    begin, over, answers, late_s = threading.Event(), threading.Event(), [], []
    targets = []
    if what == "io":
        function, arguments = io, (how, int(sys.argv[3]), int(sys.argv[4]))
    elif what == "lines":
        function, arguments = lines, (how, sys.argv[3])
    else:
        function, arguments = collect, (how, heap_of(how), float(sys.argv[3]), over)
        targets.append((tick, (begin, over, late_s)))
    targets.append((work, (begin, answers, function, arguments)))
    threads = [threading.Thread(target=target, args=words) for target, words in targets]
    for thread in threads:
        thread.daemon = True
        thread.start()
    say(pid=os.getpid())
    next_line()
    begin.set()
    for thread in threads:
        thread.join()
    late = {"ticks": len(late_s), "late_s": sum(late_s), "latest_ms": 1000 * max(late_s or [0])}
    answer = dict(answers[0])
    answer.update(late)
    say(**answer)
    next_line()


if __name__ == "__main__":
    main()
