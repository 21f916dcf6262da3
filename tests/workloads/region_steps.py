"""Begins and ends a region as it is told, and says what it knows.

Commands: `connect`, whether there are figures within some seconds; `begin`; `end`, with what the
region has; `child`, what a region of a forked child has, and whether that can connect. Nobody waits
for the GIL: figures are 0 where they are known.
"""

import os

from handshake import next_command, ready, say

from gilscope_client import connect, region

PATIENCE_S = 20.0


def of_child():
    """Return what a child has, which is not traced."""
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        with region("child") as one:
            pass
        os.write(theirs, repr([one.waits, connect(0.2)]).encode())
        os._exit(0)
    os.waitpid(child, 0)
    return os.read(ours, 100).decode()


def main():
    """Obey."""
    one = region("step")
    ready()
    while True:
        command = next_command()
        if command is None:
            os._exit(0)
        elif command == "connect":
            say({"connected": connect(PATIENCE_S)})
        elif command == "begin":
            one.__enter__()
            say({"begun": True})
        elif command == "end":
            one.__exit__(None, None, None)
            say({"waits": one.waits})
        elif command == "child":
            say({"child": of_child()})


if __name__ == "__main__":
    main()
