"""Two interpreters of one process with a GIL each, until standard input ends (CPython 3.14).

Known answer: in each of them two threads compute in turns, and `crunch` keeps that GIL.
"""

import os
import sys
import threading
from concurrent import interpreters
from pathlib import Path

BEGIN = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
import own_gils
own_gils.compute()
"""


def crunch():
    while True:
        sum(range(20_000))


def compute():
    threads = [threading.Thread(target=crunch) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def main():
    for _ in range(2):
        work = interpreters.create().exec
        threading.Thread(target=work, args=(BEGIN,), daemon=True).start()
    print("ready", flush=True)
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    main()
