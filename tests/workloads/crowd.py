"""A hundred threads of three kinds that queue for one GIL for as long as they are left to.

Ninety of them compute for some milliseconds and sleep for one; eight compute and never sleep; two
keep the GIL for 20 ms in a call into C, so that drop requests are slow to be answered.

It is ready when the last of them has begun: with the GIL so wanted, that may be seconds after the
first, and a thread that has not begun stands in functions of the library.
"""

import ctypes
import queue
import threading
import time

from handshake import next_command, ready

BEGIN = threading.Event()
BEGUN: "queue.SimpleQueue[None]" = queue.SimpleQueue()
C = ctypes.PyDLL(None)


def serve() -> None:
    BEGIN.wait()
    BEGUN.put(None)
    while True:
        sum(range(20_000))
        time.sleep(0.001)


def compute() -> None:
    BEGIN.wait()
    BEGUN.put(None)
    while True:
        sum(range(20_000))


def hold() -> None:
    BEGIN.wait()
    BEGUN.put(None)
    while True:
        C.usleep(20_000)
        time.sleep(0.05)


for function, count in ((serve, 90), (compute, 8), (hold, 2)):
    for _ in range(count):
        threading.Thread(target=function, daemon=True).start()
BEGIN.set()
for _ in range(100):
    BEGUN.get()
ready(threads=101)
while next_command() is not None:
    pass
