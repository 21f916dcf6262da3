"""Writes the headers that say to the probes what user space is told by gilscope.

PYTHONPATH=agent .venv/bin/python probes/write_headers.py
"""
# ruff: noqa: INP001 - a script

from pathlib import Path

from gilscope.gil import abi as gil_abi
from gilscope.locks import abi as locks_abi
from gilscope.transactions import abi as transactions_abi

_FOLDER = Path(__file__).parent

if __name__ == "__main__":
    (_FOLDER / "gil" / "abi.bpf.h").write_text(gil_abi.c_header())
    (_FOLDER / "locks" / "abi.bpf.h").write_text(locks_abi.c_header())
    (_FOLDER / "transactions" / "abi.bpf.h").write_text(transactions_abi.c_header())
