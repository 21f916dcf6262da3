"""Measures how fast STM logs are read, beside md5sum on the same file in the same run.

Prints a table, and fails where reading is slower than half of md5sum or takes more than 64 MB.
"""

import argparse
import json
import os
import statistics
import struct
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

# Run as a script: its own folder is on the path, and this file would hide the tests' package stm.
sys.path.remove(str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(1, str(Path(__file__).resolve().parents[1] / "tests"))

from bench.stm_page import FOLDER, show_and_keep

from support.stm_log.program import played_log
from support.stm_log.writer import HEADS, MAGIC

__all__ = ["main", "write_long_log"]

_CHECKOUT = Path(__file__).resolve().parents[1]
_RECORDS_IN_BLOCK = 100_000
_BYTES_PER_MB = 1_000_000
_LEAST_BYTES = 210 * _BYTES_PER_MB
_LEAST_SHARE_OF_MD5SUM = 0.5
_MOST_MEMORY_BYTES = 64_000_000
_ROUNDS = 3
_SECONDS = struct.Struct("<I")

# Only the reading: a report of any length takes as long to start and to print.
_READER = """
import sys, time, json
from gilscope.stm_log.reader import Reading
from gilscope.stm_log.read import read_log
began, cpu = time.perf_counter(), time.process_time()
file = read_log(sys.argv[1], Reading(), lambda done, whole: None)
print(json.dumps([time.perf_counter() - began, time.process_time() - cpu,
                  sum(log.records for log in file.logs)]))
"""


@dataclass(frozen=True, slots=True)
class _Run:
    wall_s: float
    cpu_s: float
    records: int = 0
    memory_bytes: int = 0
    """The largest resident size."""


def main() -> int:
    """Measure, print, and return 1 where a bar is missed."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=_ROUNDS, metavar="N")
    rounds = options.parse_args().rounds
    FOLDER.mkdir(parents=True, exist_ok=True)
    rows = [
        "| log | size | records | md5sum | reading | share | CPU time | ns a record | memory |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    is_enough = True
    for table in ("E16", "C7"):
        path = FOLDER / f"stm-{table}.log"
        try:
            write_long_log(path, table)
            row, is_good = _measure(path, table, rounds)
        finally:
            path.unlink(missing_ok=True)
        rows.append(row)
        is_enough = is_enough and is_good
    show_and_keep(rows, is_following=False)
    return 0 if is_enough else 1


def write_long_log(path: Path, table: str, least_bytes: int = _LEAST_BYTES) -> None:
    """Write a log of at least *least_bytes*: a program that does the same again and again."""
    play = played_log(table, _RECORDS_IN_BLOCK)
    block = bytearray(play.content[len(MAGIC[play.layout]) :])
    places = list(_places(block, play.layout))
    lasts_s = _seconds(block, places[-1]) - _seconds(block, places[0]) + 1
    with path.open("wb") as log:
        log.write(MAGIC[play.layout])
        while log.tell() < least_bytes:
            log.write(block)
            for place in places:
                _SECONDS.pack_into(block, place, _seconds(block, place) + lasts_s)


def _places(block: bytes | bytearray, layout: str) -> Sequence[int]:
    places, at, head = [], 0, HEADS[layout]
    while at < len(block):
        places.append(at)
        lengths = block[at + head - (1 if layout == "L8" else 2) : at + head]
        at += head + sum(lengths)
    return places


def _seconds(block: bytes | bytearray, place: int) -> int:
    seconds: int = _SECONDS.unpack_from(block, place)[0]
    return seconds


def _measure(path: Path, table: str, rounds: int) -> tuple[str, bool]:
    # In turn, so that both meet the same machine.
    sums, reads = [], []
    for _ in range(rounds):
        sums.append(_sum(path))
        reads.append(_read(path))
    md5sum_s = statistics.median(run.wall_s for run in sums)
    read_s = statistics.median(run.wall_s for run in reads)
    size = path.stat().st_size
    share = md5sum_s / read_s
    cpu_share = statistics.median(run.cpu_s for run in sums) / statistics.median(
        run.cpu_s for run in reads
    )
    memory = max(run.memory_bytes for run in reads)
    records = reads[0].records
    row = (
        f"| {table} | {size / _BYTES_PER_MB:.0f} MB | {records} "
        f"| {size / _BYTES_PER_MB / md5sum_s:.0f} MB/s | {size / _BYTES_PER_MB / read_s:.0f} MB/s "
        f"| {share:.2f} | {cpu_share:.2f} | {1e9 * read_s / records:.0f} "
        f"| {memory / _BYTES_PER_MB:.1f} MB |"
    )
    return row, share >= _LEAST_SHARE_OF_MD5SUM and memory <= _MOST_MEMORY_BYTES


def _sum(path: Path) -> _Run:
    began = time.perf_counter()
    process = subprocess.Popen(["md5sum", str(path)], stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    wall_s = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    assert not process.returncode
    return _Run(wall_s, used.ru_utime + used.ru_stime)


def _read(path: Path) -> _Run:
    environment = {**os.environ, "PYTHONPATH": str(_CHECKOUT / "agent")}
    command = [sys.executable, "-c", _READER, str(path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, env=environment)
    assert process.stdout is not None
    told = process.stdout.read()
    process.stdout.close()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert not process.returncode
    wall_s, cpu_s, records = json.loads(told)
    return _Run(wall_s, cpu_s, records, used.ru_maxrss * 1024)


if __name__ == "__main__":
    sys.exit(main())
