"""Keeps the GIL in a C function until a byte comes by standard input, while another thread waits.

Then it waits for the end of standard input without the GIL.
"""

import ctypes
import os
import threading
import time


def wait() -> None:
    """Come back from a blocking call again and again."""
    while True:
        time.sleep(0.001)


def hold() -> None:
    """Read a byte as a C extension would that does not release the GIL."""
    ctypes.PyDLL(None).read(0, ctypes.create_string_buffer(1), 1)


threading.Thread(target=wait, daemon=True).start()
print("holding", flush=True)
hold()
print("released", flush=True)
while os.read(0, 100):
    pass
