"""The worst case for probes: one thread that does nothing but release and acquire the GIL.

Known answer: each unit is one uncontended release and acquire, by os.read of one byte from
/dev/zero (with --c by PyEval_SaveThread and PyEval_RestoreThread alone). No waits. The CPU time of
a round divided by its units is the cost of one cycle. Each line on stdin runs one round.
"""

import argparse
import ctypes
import os

from rounds import serve_rounds


def read_bytes(fd: int, cycles: int) -> None:
    """Read one byte *cycles* times."""
    read = os.read
    for _ in range(cycles):
        read(fd, 1)


def main() -> None:
    """Serve rounds."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cycles", type=int, default=1_000_000)
    parser.add_argument("--c", action="store_true", help="call the C API instead of os.read")
    options = parser.parse_args()
    if options.c:
        # Only this case needs a compiler.
        from gilclock import load  # noqa: PLC0415

        keeping, _ = load()
        cycles = ctypes.c_uint64(options.cycles)
        serve_rounds(lambda: keeping.gilclock_tight(cycles), options.cycles)
    else:
        fd = os.open("/dev/zero", os.O_RDONLY)
        serve_rounds(lambda: read_bytes(fd, options.cycles), options.cycles)


if __name__ == "__main__":
    main()
