"""A deadlock of the GIL and of a mutex of a C library.

Known answer: after `ready`, and one command, the main thread stands in `want` with the GIL, and
waits for the mutex that the thread `keep` owns; that one waits for the GIL, in the same order
until the process is killed. `ready` has the kernel's numbers of both.
"""

import ctypes
import hashlib
import os
import subprocess
import threading
from pathlib import Path

from gilclock import build_directory
from handshake import await_begin, ready
from old_pythons import native_id

_SOURCE = Path(__file__).resolve().parent / "abba.c"
_COMPILER = ("gcc", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-pthread")


def build() -> str:
    """Return the library, compiled once for all processes of this session."""
    digest = hashlib.sha256(_SOURCE.read_bytes()).hexdigest()[:16]
    library = build_directory() / ("abba-%s.so" % digest)
    if not library.exists():
        unfinished = library.with_suffix(".%d" % os.getpid())
        subprocess.run([*_COMPILER, "-o", str(unfinished), str(_SOURCE)], check=True)
        unfinished.rename(library)
    return str(library)


PATH = build()
# Calls through the first keep the GIL, those through the second let go of it.
KEEPING, DROPPING = ctypes.PyDLL(PATH), ctypes.CDLL(PATH)
CALLBACK = ctypes.CFUNCTYPE(None)
KEEPER_TIDS = []


def keep():
    """Take the mutex, and then the GIL."""
    KEEPER_TIDS.append(native_id())
    DROPPING.abba_keep(CALLBACK(lambda: None))


def want():
    """Take the mutex with the GIL."""
    KEEPING.abba_want()


def main():
    """Say who is who, and be stuck."""
    threading.Thread(target=keep, daemon=True).start()
    DROPPING.abba_await_taken()
    ready(main=native_id(), keeper=KEEPER_TIDS[0])
    await_begin()
    want()


if __name__ == "__main__":
    main()
