"""Two threads that compute and make each other yield all the time.

Known answer: each unit is one sum over a range of a thousand numbers, the same amount in every
round, so any difference in CPU time between rounds is the cost of switching and of probes. Each
line on stdin runs one round.
"""

import argparse
import threading

from rounds import serve_rounds


def crunch(units: int) -> None:
    """Compute *units* sums."""
    for _ in range(units):
        sum(range(1000))


def fight(threads: int, units: int) -> None:
    """Share the units out among the threads and wait for them."""
    fighters = [threading.Thread(target=crunch, args=(units // threads,)) for _ in range(threads)]
    for fighter in fighters:
        fighter.start()
    for fighter in fighters:
        fighter.join()


def main() -> None:
    """Serve rounds."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--units", type=int, default=100_000)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    units = options.units // options.threads * options.threads
    serve_rounds(lambda: fight(options.threads, units), units)


if __name__ == "__main__":
    main()
