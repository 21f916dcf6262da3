"""A process that contends for half a second and then exits with code 7.

Known answer: exit code 7, traced or not; two threads that make each other yield for 0.5 s, so that
together they wait for about 0.5 s. What each saw is in the result, written just before the end.
"""

import sys

from crunching import Fight
from handshake import await_begin, ready, say

EXIT_CODE = 7


def main() -> None:
    """Fight, report, and exit without waiting for anybody."""
    ready()
    await_begin()
    fight = Fight(seconds=0.5)
    fight.start()
    fight.join()
    say({"done": True, "threads": fight.truth()})
    sys.exit(EXIT_CODE)


if __name__ == "__main__":
    main()
