"""The agent's own memory, from both files that tell it."""

import json
import mmap
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gilscope.system.memory_usage import OwnMemory, parse_smaps_rollup, parse_statm, read_own_memory
from support.paths import AGENT

_ROLLUP = """\
562d5f0b8000-7ffff012d000 ---p 00000000 00:00 0                          [rollup]
Rss:                1568 kB
Pss:                 256 kB
Pss_Anon:            112 kB
Shared_Clean:       1420 kB
Shared_Dirty:          0 kB
Private_Clean:        36 kB
Private_Dirty:       112 kB
Referenced:         1568 kB
Private_Hugetlb:       0 kB
"""
_STATM = "3240 392 355 5 0 130 0\n"


def test_rollup_adds_clean_and_dirty_pages() -> None:
    """
    Private is what only this process maps, written to or not.
    """
    assert OwnMemory(1568 * 1024, 148 * 1024) == parse_smaps_rollup(_ROLLUP)


def test_statm_counts_in_pages() -> None:
    """
    Private is what is resident and belongs to no file.
    """
    assert OwnMemory(392 * 4096, 37 * 4096) == parse_statm(_STATM, 4096)


def test_rollup_is_preferred(tmp_path: Path) -> None:
    """
    It is exact; statm serves only where it is missing.
    """
    (tmp_path / "statm").write_text(_STATM)
    assert parse_statm(_STATM, mmap.PAGESIZE) == read_own_memory(tmp_path)

    (tmp_path / "smaps_rollup").write_text(_ROLLUP)
    assert parse_smaps_rollup(_ROLLUP) == read_own_memory(tmp_path)


def test_without_proc(tmp_path: Path) -> None:
    """
    Where neither file is there, the error says so.
    """
    with pytest.raises(FileNotFoundError):
        read_own_memory(tmp_path)


_TAKES = """
import json, mmap
from dataclasses import astuple
from gilscope.system.memory_usage import read_own_memory

read_own_memory()
before = read_own_memory()
taken = mmap.mmap(-1, {size}, mmap.MAP_PRIVATE)
for offset in range(0, {size}, mmap.PAGESIZE):
    taken[offset] = 1
print(json.dumps([astuple(before), astuple(read_own_memory())]))
"""


def test_memory_that_is_taken_shows() -> None:
    """
    In a process that does nothing else 64 MB written to are 64 MB more, and private.
    """
    size = 64 << 20
    command = [sys.executable, "-c", _TAKES.format(size=size)]
    environment = {**os.environ, "PYTHONPATH": str(AGENT)}
    told = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    before, after = (OwnMemory(*each) for each in json.loads(told.stdout))

    assert size <= after.resident_bytes - before.resident_bytes < size + (8 << 20)
    # Pages of a file are private or not as other processes come and go.
    assert before.private_bytes < size <= after.private_bytes <= after.resident_bytes
