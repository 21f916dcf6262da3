"""One thread that reads from a pipe, and another that keeps the GIL once the first wants it."""

import ctypes
import os
import time

FUTEX = b"202 "

# It keeps the GIL.
LIBC = ctypes.PyDLL(None)


def opened_syscall(tid):
    """Return a descriptor of what says in which system call thread *tid* is."""
    return os.open("/proc/self/task/%d/syscall" % tid, os.O_RDONLY)


def await_read(syscall):
    """Wait until the other thread reads from its pipe."""
    while not os.pread(syscall, 64, 0).startswith(b"0 "):
        time.sleep(0.001)


def hold_until_it_waits(go, syscall, held_s):
    """Let the other come back from its read, and keep the GIL for *held_s* once it wants it."""
    text = ctypes.create_string_buffer(64)
    LIBC.write(go, b"x", 1)
    while True:
        LIBC.pread(syscall, text, 64, ctypes.c_long(0))
        if text.raw.startswith(FUTEX):
            break
        LIBC.usleep(100)
    LIBC.usleep(int(held_s * 1e6))
