"""One thread that computes, and no other: is there a GIL? Also for Python 2.7."""

import os
import threading

from talk import next_line, say
from tasks import pidigits


def main():
    say(pid=os.getpid(), threads=threading.active_count())
    next_line()
    say(tasks=sum(1 for _ in range(20) if pidigits() is None))
    next_line()


if __name__ == "__main__":
    main()
