"""Interpreters with a GIL of their own: who waits in one of them waits for a thread of that one.

Known answer: in each of three interpreters, the main one among them, `rest` waits for `toil` most
of the time. The code of each has a file name of its own: `<duel 0>`, `<duel 1>` and `<duel 2>`.
Needs CPython 3.12 or later; before, the ready line says `"ready": false` with a reason.
"""

import os
import sys
import threading

from handshake import await_begin, finish, ready, say
from subinterpreters import NOT_SUPPORTED, create, run

# A thread that begins waits before it has any frames: long enough for that to make up little.
SECONDS = 2.5
DUEL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "blame_duel.py")

PREPARE = """
with open({path!r}) as file:
    exec(compile(file.read(), "<duel {number}>", "exec"))
"""


def main() -> None:
    """Let the duels of all interpreters go on at the same time."""
    if sys.version_info < (3, 12):
        say({"ready": False, "pid": os.getpid(), "reason": "one GIL for all before 3.12"})
        sys.exit(NOT_SUPPORTED)
    others = [create(), create()]
    scope = {}
    exec(PREPARE.format(path=DUEL, number=0), scope)  # noqa: S102
    for number, interpreter in enumerate(others, start=1):
        run(interpreter, PREPARE.format(path=DUEL, number=number))
    ready(interpreters=[0, *(int(interpreter) for interpreter in others)])
    await_begin()
    code = "duel(%r)" % SECONDS
    threads = [threading.Thread(target=run, args=(interpreter, code)) for interpreter in others]
    for thread in threads:
        thread.start()
    scope["duel"](SECONDS)
    for thread in threads:
        thread.join()
    finish({})


if __name__ == "__main__":
    main()
