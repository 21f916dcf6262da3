"""Keeps the GIL for a reason that is known, again and again, while another thread wants it.

The reason is the first argument. The answer says how much of the time garbage was collected, by
the interpreter's own callbacks.
"""

import ctypes
import gc
import os
import re
import subprocess
import sys
import tempfile
import threading
import time

from handshake import finish, next_command, ready

_LIBC = ctypes.PyDLL(None)
_NAP_S = 0.1
_ITERATIONS = 20000
_CONTAINERS = 600000
_REFERENCES = 50
"""Of each container: a collection follows them, and they cost little to make."""
_SHARED = []


def collect():
    """Collect garbage, because somebody asks for it."""
    gc.collect()


def allocate():
    """Make so many containers that Python collects garbage by itself, in `overflow`."""
    gc.disable()
    made = make()
    gc.enable()
    overflow()
    return made


def make():
    """Make containers. They are counted, though nothing is collected meanwhile."""
    return [[_SHARED] * _REFERENCES for _ in range(_CONTAINERS // 4)]


def overflow():
    """Make one more, and go on: from 3.12 on a collection begins at the next jump back."""
    return [[number] for number in range(10)]


def match():
    """Match a regular expression that tries for long."""
    re.match("(a+)+b", "a" * 23)


def nap():
    """Sleep in C code that does not release the GIL."""
    _LIBC.usleep(int(_NAP_S * 1e6))


def read():
    """Read from a pipe in C code that does not release the GIL."""
    _LIBC.read(_PIPE[0], ctypes.create_string_buffer(1), 1)


def spin():
    """Compute in a library of our own that does not release the GIL."""
    _SPINS[0](int(_NAP_S * 1e9))


def compiled(folder):
    """Return the function of that library, compiled in *folder*."""
    library = os.path.join(folder, "libspin.so")
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "spin_in_c.c")
    subprocess.run(["gcc", "-O1", "-shared", "-fPIC", "-o", library, source], check=True)
    function = ctypes.PyDLL(library).spin_with_the_gil
    function.argtypes = [ctypes.c_long]
    return function


def compute():
    """Run Python code."""
    number = 0
    while number < _ITERATIONS:
        number += 1


def keep(hold):
    """Do it until the end."""
    while not _ENDS.is_set():
        hold()


def wait():
    """Come back from a blocking call again and again."""
    while not _ENDS.is_set():
        time.sleep(0.001)


def note_collection(phase, _info):
    """Add up the time from the beginning of a collection to its end."""
    if phase == "start":
        _BEGAN.append(time.monotonic())
    else:
        _COLLECTED.append(time.monotonic() - _BEGAN[-1])


_REASONS = {each.__name__: each for each in (collect, allocate, match, nap, read, spin, compute)}
_ENDS = threading.Event()
_BEGAN, _COLLECTED = [], []
_PIPE = os.pipe()
_heap = [[number] for number in range(_CONTAINERS)]
_SPINS = []
if sys.argv[1] == "spin":
    with tempfile.TemporaryDirectory() as _folder:
        _SPINS.append(compiled(_folder))
if sys.argv[1] == "read" and not os.fork():
    # Another process writes, so that nobody needs the GIL for that.
    while os.getppid() != 1:
        time.sleep(_NAP_S)
        os.write(_PIPE[1], b"x")
    os._exit(0)

gc.callbacks.append(note_collection)
_began = time.monotonic()
_threads = [
    threading.Thread(target=keep, args=(_REASONS[sys.argv[1]],)),
    threading.Thread(target=wait),
]
for thread in _threads:
    thread.start()
ready()
next_command()
_ENDS.set()
for thread in _threads:
    thread.join()
finish({"collected": sum(_COLLECTED) / (time.monotonic() - _began)})
