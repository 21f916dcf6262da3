"""Compiles the probes once for all machines, so that an installation needs no compiler.

PYTHONPATH=agent .venv/bin/python probes/compile_ahead.py
"""
# ruff: noqa: INP001, T201 - a script

import sys

from gilscope.bpf.loader import compile_ahead
from gilscope.errors import GilscopeError
from gilscope.gil.probes import program as gil
from gilscope.locks import program as locks
from gilscope.transactions import program as transactions

__all__ = ["main"]


def main() -> int:
    """Write all files into the package and return the exit code."""
    for request in (program.whole_request() for program in (gil, locks, transactions)):
        try:
            path = compile_ahead(request)
        except (GilscopeError, OSError, ValueError) as error:
            print(f"programs: error: {request.probe}: {error}", file=sys.stderr)
            return 1
        print(f"programs: {path} ({path.stat().st_size} bytes)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
