"""A process that becomes another Python in the middle of its threads' waits.

Known answer: one pid, two interpreters. Stage 1 fights with two threads and execs while one of
them waits: its state must be dropped, and nothing of it may count for stage 2. Stage 2 says ready
again, is idle (0 waits) until the next command, fights for --seconds, and reports as usual.
Each stage ends with a result; --then names the interpreter of stage 2, by default the same.
"""

import argparse
import os
import sys
import time

from crunching import Fight
from handshake import await_begin, finish, ready, say

FOREVER = 3600.0


def parse_arguments() -> "argparse.Namespace":
    """Return the command line's options."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--then", default=sys.executable)
    parser.add_argument("--stage", type=int, default=1)
    return parser.parse_args()


def main() -> None:
    """Run the stage that the command line names."""
    options = parse_arguments()
    ready(stage=options.stage)
    await_begin()
    if options.stage == 2:
        fight = Fight(options.seconds)
        fight.start()
        fight.join()
        finish({"stage": 2, "threads": fight.truth()})
    fight = Fight(FOREVER)
    fight.start()
    time.sleep(options.seconds)
    say({"done": True, "stage": 1, "threads": fight.truth()})
    script = os.path.abspath(__file__)
    arguments = [script, "--stage", "2", "--seconds", str(options.seconds)]
    os.execv(options.then, [options.then, *arguments])  # noqa: S606


if __name__ == "__main__":
    main()
