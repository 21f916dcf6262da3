"""A process that forks, executes another program or is killed, on any Python back to 2.7.

Known answer, command by command, each one line:

* `fork`: two threads compute until the end; the child starts two of its own, which compute for a
  moment. It says `{"child": pid, "tids": [...]}` with its threads, and ends.
* `exec COMMAND...`: becomes that, in the middle of its threads' waits.
* `hold`: one thread holds the GIL within one computation that takes far longer than any test. The
  main thread waits for the GIL as soon as it has read another line.

The first answer has `"tids"`: the threads that compute, none for `hold`.
"""

from __future__ import print_function

import json
import os
import sys
import threading
import time

MOMENT_S = 0.2


def say(message):
    """Write one line of JSON."""
    os.write(1, (json.dumps(message) + "\n").encode())


def heard():
    """Return the next line, read byte by byte: nothing of a later one is taken."""
    line = b""
    while not line.endswith(b"\n"):
        line += os.read(0, 1)
    return line.decode().strip()


def tids():
    """Return all threads of this process."""
    return sorted(map(int, os.listdir("/proc/self/task")))


def crunch(ended):
    """Compute."""
    total = 0
    while not ended:
        for number in range(20000):
            total += number * number % 7
    return total


def start(count, ended):
    """Return threads that compute until there is something in *ended*."""
    threads = [threading.Thread(target=crunch, args=(ended,)) for _ in range(count)]
    for thread in threads:
        thread.daemon = True
        thread.start()
    return threads


def fork():
    """Have a child whose threads compute, and which says so."""
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        return
    ended = []
    threads = start(2, ended)
    told = {"child": os.getpid(), "tids": tids()}
    time.sleep(MOMENT_S)
    ended.append(True)
    for thread in threads:
        thread.join()
    say(told)
    os._exit(0)


def hold(base):
    """Hold the GIL: one operation releases it at no time."""
    say({"holds": True})
    return base**30000000


def main():
    """Do what is asked."""
    say({"ready": True, "pid": os.getpid()})
    what = heard()
    if what == "hold":
        holder = threading.Thread(target=hold, args=(3,))
        holder.daemon = True
        holder.start()
        while True:
            heard()
    start(2, [])
    say({"tids": tids()})
    command, _, rest = heard().partition(" ")
    if command == "fork":
        fork()
    elif command == "exec":
        arguments = json.loads(rest)
        os.execvp(arguments[0], arguments)  # noqa: S606
    heard()
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
