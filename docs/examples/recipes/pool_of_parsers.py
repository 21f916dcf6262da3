"""Texts that are parsed in a `ThreadPoolExecutor`, until standard input ends.

Known answer: `parse` keeps the GIL, with the module `re` beneath it.
"""

import re
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

TEXT = "name=value;" * 3000
PATTERN = re.compile(r"(\w+)=(\w+);")
GOES_ON = threading.Event()


def parse(_):
    return [found.groups() for found in PATTERN.finditer(TEXT)]


def main():
    threading.Thread(target=lambda: (sys.stdin.read(), GOES_ON.set()), daemon=True).start()
    print("ready", flush=True)
    with ThreadPoolExecutor(4) as pool:
        while not GOES_ON.is_set():
            list(pool.map(parse, range(40)))


if __name__ == "__main__":
    main()
