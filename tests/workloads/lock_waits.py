"""Threads that wait for locks: of the program, of objects, or for something to do.

lock_waits.py KIND SECONDS. Each worker times its own acquisitions; with the library of
sleep_clock.c, loaded before and named by SLEEP_CLOCK, it is known what each has slept too.
"""

import ctypes
import functools
import gc
import os
import queue
import sys
import threading
import time
import weakref

try:
    import _interpreters as interpreters
except ImportError:
    interpreters = None  # before CPython 3.13

from handshake import await_begin, finish, ready

_HELD_S = 0.003
_BRIEF_S = 0.0003
_APART_S = 0.0005
_SORTED = 30_000
_FREE_NS = 3000
"""Who has to wait tries for longer than that before it sleeps."""

_CHILD_IS_WELL = 7
_IN_ANOTHER = """
import os, threading, time

def hold():
    clock, times = time.perf_counter_ns, []
    end = clock() + int({} * 1e9)
    while clock() < end:
        before = clock()
        lock.acquire()
        times.append(clock() - before)
        time.sleep({})
        lock.release()
        time.sleep({})
    os.write({}, b"%d %d %d\\n" % (threading.get_native_id(), sum(times), len(times)))

lock = threading.Lock()
threads = [threading.Thread(target=hold) for _ in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""

kind, seconds = sys.argv[1], float(sys.argv[2])
clock = time.perf_counter_ns
began = threading.Event()
waited: "dict[int, dict[str, int]]" = {}
ended: "list[int]" = []
"""The exit codes of children."""


def until_end() -> "int":
    """Return when it is over, once it has begun."""
    # To wait for the event is to take its lock again at the end, and at times to wait for that.
    while not began.is_set():
        time.sleep(0.001)
    return clock() + int(seconds * 1e9)


def note(times: "list[int]") -> None:
    """Keep how long the acquisitions of this thread took, or its collections, and how many."""
    waited[threading.get_native_id()] = {"wait_ns": sum(times), "waits": len(times)}


def hold(lock: "threading.Lock", apart_s: "float" = _APART_S) -> None:
    """Take the lock, keep it for a while, and again *apart_s* later, or at once."""
    end, times = until_end(), []
    while clock() < end:
        before = clock()
        lock.acquire()
        times.append(clock() - before)
        time.sleep(_HELD_S)
        lock.release()
        if apart_s:
            time.sleep(apart_s)
    note(times)


def pass_by(lock: "threading.RLock") -> None:
    """Take the lock, release it at once, and stand somewhere else."""
    end = until_end()
    while clock() < end:
        lock.acquire()
        lock.release()
        stand_elsewhere()
    note([])


def stand_elsewhere() -> None:
    """Stand where nobody has a lock."""
    time.sleep(_BRIEF_S)


def compete(lock: "threading.Lock") -> None:
    """Take the lock for some microseconds, as often as it can be had, and note what was no wait."""
    own, apart = threading.Lock(), []
    for _ in range(20_000):
        before = clock()
        own.acquire()
        apart.append(clock() - before)
        own.release()
    free_ns = sorted(apart)[len(apart) // 2]
    end, times = until_end(), []
    before = clock()
    while before < end:
        lock.acquire()
        took_ns = clock() - before
        if took_ns > _FREE_NS:
            times.append(took_ns - free_ns)
        sum(range(300))
        lock.release()
        sum(range(300))
        before = clock()
    note(times)


def give_up(lock: "threading.Lock") -> None:
    """Try to take the lock for a time that is never enough."""
    end, times = until_end(), []
    while clock() < end:
        before = clock()
        lock.acquire(timeout=_HELD_S)
        times.append(clock() - before)
    note(times)


def sort(shared: "list[int]") -> None:
    """Keep the list's own lock for as long as it takes to sort it."""
    end = until_end()
    while clock() < end:
        shared.sort()
    note([])


def merge(into: "set[int]", other: "set[int]") -> None:
    """Keep the locks of two sets for as long as it takes to merge them."""
    end = until_end()
    while clock() < end:
        into.update(other)
    note([])


def add(shared: "set[int]") -> None:
    """Add what is there already to the set, again and again."""
    end = until_end()
    while clock() < end:
        shared.add(0)
        time.sleep(_APART_S)
    note([])


def hold_everywhere(lock: "threading.RLock") -> None:
    """Keep the lock at three hundred lines in turn."""
    text = "def everywhere():\n" + "    with lock: pause(0.001)\n" * 300
    names = {"lock": lock, "pause": time.sleep}
    exec(compile(text, "everywhere.py", "exec"), names)  # noqa: S102 - as above
    end = until_end()
    while clock() < end:
        names["everywhere"]()
    note([])


def visit(lock: "threading.RLock") -> None:
    """Take the lock, and let it go at once."""
    end = until_end()
    while clock() < end:
        lock.acquire()
        lock.release()
        time.sleep(_APART_S)
    note([])


def cross(mine: "threading.RLock", others: "threading.RLock", pause_s: "float") -> None:
    """Keep a lock, and want the one that another thread keeps likewise."""
    until_end()
    with mine:
        meeting.wait()
        # Who wants the other's lock first finds that one standing still.
        time.sleep(pause_s)
        others.acquire(timeout=seconds)
        # Or who gives up first lets go what the other one still waits for.
        meeting.wait()
    note([])


def change() -> None:
    """Change a class of its own, again and again."""

    class Own:
        count = 0

    end = until_end()
    while clock() < end:
        Own.count += 1
    note([])


def refer() -> None:
    """Make references with something to call, each of which is a new one."""
    end = until_end()
    while clock() < end:
        weakref.ref(meeting, print)
    note([])


def intern(name: "str") -> None:
    """Intern strings that nobody has interned."""
    end = until_end()
    number = 0
    while clock() < end:
        sys.intern(f"{name} {number}")
        number += 1
    note([])


def sort_and_sum(shared: "list[int]") -> None:
    """Have the list's own lock for a microsecond, and do something else for some."""
    end = until_end()
    while clock() < end:
        shared.sort()
        sum(range(100))
    note([])


def store(shared: "list[int]") -> None:
    """Store into the list, again and again: which takes no time but for the lock.

    To append may copy a list with all its items.
    """
    end, times = until_end(), []
    while clock() < end:
        before = clock()
        shared[0] = 0
        times.append(clock() - before)
        time.sleep(_APART_S / 2)
    note(times)


def fork() -> None:
    """Have children whose threads wait for a lock of their own; each must come to its end."""
    end = until_end()
    while clock() < end:
        pid = os.fork()
        if not pid:
            own = threading.Lock()
            threads = [threading.Thread(target=take, args=(own,)) for _ in range(3)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            os._exit(_CHILD_IS_WELL)
        _, status = os.waitpid(pid, 0)
        ended.append(os.waitstatus_to_exitcode(status))
        time.sleep(_HELD_S)
    note([])


def take(lock: "threading.Lock") -> None:
    """Take the lock and keep it for a while, some times."""
    for _ in range(5):
        with lock:
            time.sleep(_HELD_S)


def interpret() -> None:
    """Run another interpreter, whose threads wait for a lock of its own."""
    reading, writing = os.pipe()
    number = interpreters.create()
    until_end()
    failure = interpreters.exec(number, _IN_ANOTHER.format(seconds, _HELD_S, _APART_S, writing))
    if failure is not None:
        raise SystemExit(failure.formatted)
    interpreters.destroy(number)
    os.close(writing)
    with os.fdopen(reading) as said:
        for line in said:
            tid, ns, count = map(int, line.split())
            waited[tid] = {"wait_ns": ns, "waits": count}
    note([])


def relay(mine: "threading.Lock", others: "threading.Lock") -> None:
    """Wait to be let go, and let the other one go: as often as that can be done."""
    end, times = until_end(), []
    while clock() < end:
        before = clock()
        if not mine.acquire(timeout=1):
            break  # the other one has ended
        times.append(clock() - before)
        others.release()
    note(times)


def consume(items: "queue.Queue[object]") -> None:
    """Wait for something to do, which comes seldom."""
    until_end()
    while items.get() is not None:
        pass
    note([])


def produce(items: "queue.Queue[object]") -> None:
    """Give the other one something to do."""
    end = until_end()
    while clock() < end:
        items.put(0)
        time.sleep(_HELD_S)
    items.put(None)
    note([])


def collect(pause_s: "float" = _HELD_S, *, is_brief: "bool" = False) -> None:
    """Stop the world, again and again; for some microseconds, where there is little to collect."""
    if is_brief:
        gc.freeze()
    end, times = until_end(), []
    while clock() < end:
        before = clock()
        gc.collect()
        times.append(clock() - before)
        time.sleep(pause_s)
    note(times)


def compute(pause_s: "float" = 0) -> None:
    """Be stopped by others, and wait for nothing else, but in pauses."""
    end = until_end()
    while clock() < end:
        sum(range(100))
        if pause_s:
            time.sleep(pause_s)
    note([])


shared = list(range(_SORTED))
sets = (set(shared), set(shared))
meeting = threading.Barrier(2)
rlocks = (threading.RLock(), threading.RLock())
items: "queue.Queue[object]" = queue.Queue()
turns = (threading.Lock(), threading.Lock())
lock = threading.RLock() if kind == "rlock" else threading.Lock()
workers = {
    "lock": [(hold, lock)] * 3,
    "rlock": [(hold, lock)] * 3,
    "rlock_turns": [(hold, rlocks[0], 0.0)] * 2,
    "rlock_elsewhere": [(hold, rlocks[0])] + [(pass_by, rlocks[0])] * 2,
    "timeout": [(give_up, lock)] * 2,
    "object": [(sort, shared), (store, shared), (store, shared)],
    "short_holds": [(sort_and_sum, shared[:50])] * 2,
    "sets": [(merge, *sets), (add, sets[0]), (add, sets[1])],
    "everywhere": [(hold_everywhere, rlocks[0]), (visit, rlocks[0])],
    "types": [(change,)] * 3,
    "weak_references": [(refer,)] * 3,
    "interned_strings": [(intern, name) for name in ("one", "other", "third")],
    "crossed": [(cross, *rlocks, 0.0), (cross, *reversed(rlocks), 0.05)],
    "relay": [(relay, *turns), (relay, *reversed(turns))],
    "idle": [(consume, items), (produce, items)],
    "stops": [(collect,), (compute,)],
    "brief_stops": [(functools.partial(collect, _BRIEF_S, is_brief=True),), (compute,)],
    "brief": [(compete, lock)] * 2,
    "crowd": [(hold, lock)] * 200,
    "forks": [(hold, lock)] * 3 + [(fork,)],
    "interpreters": [(interpret,)] * 2,
    "both": [(hold, lock)] * 3 + [(collect, 0.1), (compute, 0.0001)],
}[kind]
threads = [threading.Thread(target=work, args=what) for work, *what in workers]
for thread in threads:
    thread.start()
if kind == "timeout":
    lock.acquire()
if kind == "idle":
    # Or a collection stops who is about to sleep.
    gc.disable()
if kind == "relay":
    turns[1].acquire()
while not all(thread.native_id for thread in threads):
    time.sleep(0.001)
ready(tids=[thread.native_id for thread in threads])
await_begin()
library = os.environ.get("SLEEP_CLOCK")
sleeps = ctypes.CDLL(library) if library else None
if sleeps is not None:
    sleeps.sleep_clock_begin()
began.set()
for thread in threads:
    thread.join()
for tid, numbers in waited.items():
    ns, count, woke_ns = ctypes.c_uint64(), ctypes.c_uint64(), ctypes.c_uint64()
    if sleeps is not None:
        said = (ctypes.byref(each) for each in (ns, count, woke_ns))
        sleeps.sleep_clock(ctypes.c_long(tid), *said)
    numbers.update(slept_ns=ns.value, sleeps=count.value, woke_ns=woke_ns.value)
# Those of the table above come first, in its order.
tids = dict.fromkeys([*(thread.native_id for thread in threads), *waited])
finish(
    {
        "threads": {str(tid): waited[tid] for tid in tids},
        "children": {"ended": len(ended), "well": ended.count(_CHILD_IS_WELL)},
        "cpu_s": time.process_time(),
    }
)
