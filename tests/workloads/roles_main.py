"""A main thread that stands still: in the program, or at its end in wait for another thread.

Known answer: the role `MainThread`, for the thread whose id is the process'. With the argument
`ending` it has left the program's module when the line `ready` is written.
"""

import sys
import threading
import time

from handshake import next_command, ready


def last():
    """Be ready when the main thread has come to its end, and keep the process."""
    while threading.main_thread().is_alive():
        time.sleep(0.001)
    ready()
    next_command()


def main():
    """Stand still in one of two ways."""
    if sys.argv[1:] == ["ending"]:
        threading.Thread(target=last).start()
        return
    ready()
    next_command()


if __name__ == "__main__":
    main()
