"""Measures whether `stm follow` keeps up with a process that writes its log as fast as any has.

One process writes 50 MB/s in blocks of 4096 bytes, as PyPy-STM does, and another one follows.
Prints a table, and fails where bytes are lost, or where the follower is more than a second behind.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# Run as a script: its own folder is on the path, and stm.py there would hide the tests' package.
sys.path.remove(str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(1, str(Path(__file__).resolve().parents[1] / "tests"))

from bench.stm_page import FOLDER, show_and_keep

from support.stm_log.writer import MAGIC, MS, LogWriter, S, marker

__all__ = ["main", "second_of_log"]

_CHECKOUT = Path(__file__).resolve().parents[1]
_BYTES_PER_MB = 1_000_000
_MB_PER_S = 50
_DEFAULT_S = 60.0
_EVERY_S = 0.2
_BLOCK = 4096
"""What PyPy-STM flushes at a time."""
_PAUSE_S = 0.001
_PART_BYTES = 1 << 20
_WRITE = "--write"


@dataclass(frozen=True, slots=True)
class _Run:
    read_bytes: int
    records: int
    greatest_lag_bytes: int
    errors: dict[str, int]
    cpu_s: float
    wall_s: float
    memory_bytes: int
    """The largest resident size."""


def main() -> int:
    """Measure, print, and return 1 where a bar is missed."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seconds", type=float, default=_DEFAULT_S, metavar="S")
    options.add_argument("--rate", type=int, default=_MB_PER_S, metavar="MB_PER_S")
    options.add_argument(_WRITE, type=Path, help=argparse.SUPPRESS)
    arguments = options.parse_args()
    if arguments.write is not None:
        _write(arguments.write, arguments.rate * _BYTES_PER_MB, arguments.seconds)
        return 0
    FOLDER.mkdir(parents=True, exist_ok=True)
    path = FOLDER / "stm-follow.log"
    path.unlink(missing_ok=True)
    try:
        return _measure(path, arguments.rate, arguments.seconds)
    finally:
        path.unlink(missing_ok=True)


def second_of_log(second: int, least_bytes: int) -> bytearray:
    """Return records of at least *least_bytes* whose times are all within *second*."""
    log = LogWriter("L8", begin_ns=second * S)
    number = 0
    while log.size < least_bytes:
        now_ns = number % 900 * MS
        thread = 1 + number % 4
        log.add(now_ns, thread, "START").add(now_ns + 1000, thread, "GC_MINOR_START")
        log.add(now_ns + 2000, thread, "GC_MINOR_DONE")
        if number % 4:
            log.add(now_ns + 9000, thread, "COMMIT")
        else:
            log.add(now_ns + 9000, thread, "WRITE_READ", marker(number % 97, offset=number % 13))
            log.add(now_ns + 9500, thread, "ABORT")
        number += 1
    return bytearray(log.content[len(MAGIC["L8"]) :])


def _write(path: Path, bytes_per_s: int, seconds: float) -> None:
    # The same records again and again: to make them anew would take more than a core.
    part = memoryview(second_of_log(5000, _PART_BYTES))
    size = int(seconds * bytes_per_s)
    with path.open("wb", buffering=0) as log:
        log.write(MAGIC["L8"])
        began_s = time.perf_counter()
        written, at = len(MAGIC["L8"]), 0
        while written < size:
            due = min(size, int((time.perf_counter() - began_s) * bytes_per_s))
            while written < due:
                count = log.write(part[at : at + min(_BLOCK, size - written)])
                assert count
                written += count
                at = (at + count) % len(part)
            time.sleep(_PAUSE_S)
        print(json.dumps([written, time.perf_counter() - began_s]))


def _measure(path: Path, rate: int, seconds: float) -> int:
    environment = {**os.environ, "PYTHONPATH": str(_CHECKOUT / "agent")}
    words = ("stm", "follow", str(path), "--every", str(_EVERY_S), "--format", "json")
    follower = subprocess.Popen(
        [sys.executable, "-m", "gilscope", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
        text=True,
    )
    assert follower.stdout is not None
    assert follower.stderr is not None
    follower.stderr.readline()  # it has begun
    # As it does with a writer that is not its child.
    began_s = time.perf_counter()
    writer = subprocess.Popen(
        [sys.executable, __file__, "--seconds", str(seconds), "--rate", str(rate), _WRITE, path],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert writer.stdout is not None
    # The follower's lines are read while it writes them: a full pipe would stop it.
    lines: list[dict[str, Any]] = []
    written = 0
    for line in follower.stdout:
        lines.append(json.loads(line))
        if not written and writer.poll() is not None:
            written, writing_s = json.loads(writer.stdout.read())
            follower.terminate()
    _, status, used = os.wait4(follower.pid, 0)
    follower.returncode = os.waitstatus_to_exitcode(status)
    assert (writer.returncode, follower.returncode) == (0, 0)
    run = _run(lines, used.ru_utime + used.ru_stime, time.perf_counter() - began_s, used.ru_maxrss)
    return _print(run, written, writing_s)


def _run(lines: Sequence[dict[str, Any]], cpu_s: float, wall_s: float, memory_kib: int) -> _Run:
    seen = [log for line in lines for log in line.get("logs", {}).values()]
    (file,) = lines[-1]["report"]["files"].values()
    return _Run(
        read_bytes=file["bytes"],
        records=file["records"],
        greatest_lag_bytes=max(log["lag_bytes"] for log in seen),
        errors=seen[-1]["total"]["errors"],
        cpu_s=cpu_s,
        wall_s=wall_s,
        memory_bytes=memory_kib * 1024,
    )


def _print(run: _Run, written: int, writing_s: float) -> int:
    rate = written / writing_s
    row = (
        f"| {written} | {rate / _BYTES_PER_MB:.1f} MB/s | {run.read_bytes} | {run.records} "
        f"| {run.greatest_lag_bytes / _BYTES_PER_MB:.2f} MB "
        f"| {100 * run.cpu_s / run.wall_s:.0f} % | {run.memory_bytes / _BYTES_PER_MB:.1f} MB |"
    )
    head = (
        "| written | rate | read | records | greatest lag | of a core | memory |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    )
    show_and_keep((*head, row), is_following=True)
    is_whole = run.read_bytes == written and not run.errors
    if not is_whole:
        print(f"not all was read: {written - run.read_bytes} bytes are missing, {run.errors}")
    return 0 if is_whole and run.greatest_lag_bytes <= rate else 1


if __name__ == "__main__":
    sys.exit(main())
