"""Threads that stand still in stacks of every kind, and what they themselves say of these stacks.

Known answer: between `ready` and the first command every thread but the main one is parked in a
blocking read, so its stack does not change; the line that answers the command `truth` holds the
stacks as `sys._current_frames` shows them, innermost frame first. Besides the threads of the main
interpreter one parks in a second interpreter, in `inside (<string>:2)`; a third is idle, from 3.8
on. From 3.12 on the second has a GIL of its own and the third shares the main one's.
"""

# ruff: noqa: N802, PLC2401 (names outside ASCII are what the reader has to get right)

import concurrent.futures
import os
import sys
import tempfile
import threading
import zipfile

from handshake import next_command, ready, say
from old_pythons import native_id

try:
    import _interpreters as interpreters
except ImportError:
    try:
        import _xxsubinterpreters as interpreters
    except ImportError:  # before 3.8
        import _testcapi

LEVELS = 2000
STACK_BYTES = 64 * 1024 * 1024
ARRIVALS, ARRIVAL = os.pipe()
CLOSED_GATE, _GATE = os.pipe()
TIDS = {}
INSIDE = """import os
def inside():
    os.write(%d, b".")
    os.read(%d, 1)
inside()
"""


def park(*_):
    """Arrive and stay: the Python stack is the same in both calls."""
    TIDS[threading.get_ident()] = native_id()
    os.write(ARRIVAL, b".")
    os.read(CLOSED_GATE, 1)


def worker():
    """Stand in nested calls."""

    def nested():
        park()

    nested()


def through_c():
    """Stand in Python code that C code called, twice."""
    return sorted([3, 1], key=lambda number: list(map(park, [number])))


def in_generator():
    """Stand in a generator."""

    def numbers():
        yield park()

    return list(numbers())


def descend(levels):
    """Stand at the end of a deep recursion."""
    if levels:
        descend(levels - 1)
    else:
        park()


def größe():
    """Stand in a function whose name needs one byte a character."""
    park()


def 待機():
    """Stand in a function whose name needs two bytes a character."""
    park()


def 𠮷野家():
    """Stand in a function whose name needs four bytes a character."""
    park()


def in_class_body():
    """Stand in the body of a class, two lines behind its head."""

    class Body:
        one = 1
        two = park()

    return Body


def in_comprehension():
    """Stand in a comprehension of several lines."""
    return [
        number
        for number in range(3)
        if number == 1
        and park()
    ]  # fmt: skip


def in_coroutine():
    """Stand in a coroutine that another one awaits."""

    async def inner():
        park()

    async def outer():
        await inner()

    outer().send(None)


def in_handler():
    """Stand in a call of several lines, in a `with` that handles an exception."""
    lock = threading.Lock()
    try:
        with lock:
            {}[1]
    except KeyError:
        with lock:
            park(
                1,
                2,
            )


def in_text():
    """Stand in code that is made at run time, 1000 lines below its head."""
    namespace = {"park": park}
    exec("def made():\n" + "\n" * 999 + " park()", namespace)  # noqa: S102
    namespace["made"]()


def in_archive():
    """Stand in a module that is imported from an archive."""
    with tempfile.TemporaryDirectory() as folder:
        archive = os.path.join(folder, "packed.zip")
        with zipfile.ZipFile(archive, "w") as packed:
            packed.writestr("packed_module.py", "def call(park):\n    if park:\n        park()\n")
        sys.path.insert(0, archive)
        import packed_module  # noqa: PLC0415

    packed_module.call(park)


class Overriding(threading.Thread):
    """A thread that brings its own `run`."""

    def run(self):
        """Stand in the method."""
        park()


class Methods:
    """Something whose bound method is a thread's target."""

    def serve(self):
        """Stand in a method."""
        park()


def inhabit(interpreter):
    """Stand in a second interpreter."""
    TIDS[threading.get_ident()] = native_id()
    if interpreter is None:
        _testcapi.run_in_subinterp(INSIDE % (ARRIVAL, CLOSED_GATE))
    else:
        interpreters.run_string(interpreter, INSIDE % (ARRIVAL, CLOSED_GATE))


def new_interpreters():
    """Return the ids of two interpreters, the first with its own GIL where that exists."""
    if sys.version_info < (3, 8):
        return None, None
    own = interpreters.create()
    if sys.version_info >= (3, 13):
        return own, interpreters.create("legacy")
    if sys.version_info >= (3, 12):
        return own, interpreters.create(isolated=False)
    return own, interpreters.create()


def frame_truth(frame):
    """Return the stack of a frame, innermost first, as name, file, first line and line."""
    stack = []
    while frame:
        code = frame.f_code
        name = getattr(code, "co_qualname", code.co_name)
        stack.append([name, code.co_filename, code.co_firstlineno, frame.f_lineno])
        frame = frame.f_back
    return stack


def truth():
    """Return stack and kernel id of every thread of this interpreter, by pthread_self()."""
    stacks = sys._current_frames()  # noqa: SLF001 (documented, in spite of its name)
    return {
        str(thread.ident): {"tid": TIDS[thread.ident], "stack": frame_truth(stacks[thread.ident])}
        for thread in threading.enumerate()
    }


def main():
    """Park everybody, answer one question, and end."""
    TIDS[threading.get_ident()] = native_id()
    sys.setrecursionlimit(LEVELS * 2)
    threading.stack_size(STACK_BYTES)
    pool = concurrent.futures.ThreadPoolExecutor(1)
    own, _shared = new_interpreters()
    threads = [
        threading.Thread(target=target, args=arguments, daemon=True)
        for target, arguments in (
            (worker, ()),
            (lambda: park(), ()),  # noqa: PLW0108 (a lambda is what is wanted)
            (through_c, ()),
            (in_generator, ()),
            (descend, (LEVELS,)),
            (größe, ()),
            (待機, ()),
            (𠮷野家, ()),
            (Methods().serve, ()),
            (in_class_body, ()),
            (in_comprehension, ()),
            (in_coroutine, ()),
            (in_handler, ()),
            (in_text, ()),
            (in_archive, ()),
            (inhabit, (own,)),
        )
    ]
    threads.append(Overriding(daemon=True))
    for thread in threads:
        thread.start()
    pool.submit(park)
    for _ in range(len(threads) + 1):
        os.read(ARRIVALS, 1)
    ready(threads=len(threads) + 2)
    try:
        while next_command() == "truth":
            say({"truth": truth()})
    finally:
        # Python's own way out would wait for the pool, whose thread is parked.
        os._exit(0)


if __name__ == "__main__":
    main()
