"""One thread that computes and never blocks.

Known answer: each unit is one sum over a range of a thousand numbers. Nobody else wants the GIL,
so it is taken once and kept: no wait, and no release but to read the next command. The CPU time
of a round is the same with probes as without. Each line on stdin runs one round.
"""

import argparse

from rounds import serve_rounds


def crunch(units: int) -> None:
    """Compute *units* sums."""
    for _ in range(units):
        sum(range(1000))


def main() -> None:
    """Serve rounds."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--units", type=int, default=100_000)
    options = parser.parse_args()
    serve_rounds(lambda: crunch(options.units), options.units)


if __name__ == "__main__":
    main()
