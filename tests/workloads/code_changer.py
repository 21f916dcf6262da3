"""Two threads compete for the GIL while the process changes the memory that its own code is in.

Each command is carried out before it is answered:
  drop       gives the pages of the interpreter's code back, so that they come from the file again
  overwrite  makes them writable and writes what the file holds
  fork       forks a child whose threads compete too; answered with its pid
  leave      ends the main thread; the others go on, and there is no further command
The end of stdin ends the process, or the children's parent.
"""

import ctypes
import os
import threading

from handshake import next_command, ready, say

LIBC = ctypes.CDLL(None, use_errno=True)
PROT_READ, PROT_WRITE, PROT_EXEC = 1, 2, 4
MADV_DONTNEED = 4


def crunch() -> None:
    """Compute without end."""
    while True:
        sum(range(2000))


def compete() -> None:
    """Begin to compete."""
    for _ in range(2):
        threading.Thread(target=crunch, daemon=True).start()


def code() -> "tuple[int, int, int, str]":
    """Return start, size, offset and file of the mapping with the interpreter's code."""
    found = []
    with open("/proc/self/maps") as maps:
        for line in maps:
            words = line.split()
            name = os.path.basename(words[-1])
            if "x" in words[1] and ("libpython" in name or name.startswith("python")):
                start, end = (int(part, 16) for part in words[0].split("-"))
                found.append((start, end - start, int(words[2], 16), words[-1]))
    # Of an executable and its library, it is in the larger one.
    return max(found, key=lambda mapping: mapping[1])


def check(result: int) -> None:
    """Raise OSError for what failed."""
    if result:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def drop() -> None:
    """Let the kernel take every page of the code from the file again."""
    start, size, _, _ = code()
    check(LIBC.madvise(ctypes.c_void_p(start), ctypes.c_size_t(size), MADV_DONTNEED))


def overwrite() -> None:
    """Write the file's bytes over the code."""
    start, size, offset, path = code()
    with open(path, "rb") as file:
        file.seek(offset)
        content = file.read(size)
    address, length = ctypes.c_void_p(start), ctypes.c_size_t(size)
    check(LIBC.mprotect(address, length, PROT_READ | PROT_WRITE | PROT_EXEC))
    ctypes.memmove(start, content, len(content))
    check(LIBC.mprotect(address, length, PROT_READ | PROT_EXEC))


def fork() -> int:
    """Return the pid of a child that competes until its parent has ended."""
    here, there = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(there)
        compete()
        os.read(here, 1)
        os._exit(0)
    os.close(here)
    return pid


def main() -> None:
    """Obey until the end of stdin."""
    compete()
    ready()
    command = next_command()
    while command is not None:
        if command == "leave":
            say({"done": True})
            LIBC.pthread_exit(None)
        result = {"drop": drop, "overwrite": overwrite, "fork": fork}[command]()
        say({"done": True, "result": result})
        command = next_command()
    os._exit(0)


if __name__ == "__main__":
    main()
