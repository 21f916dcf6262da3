"""Captures of long waits that cannot be written, and of processes that do not wait for them."""

import json
import os
import signal
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from faults.bench import Bench
from faults.registry import Verdict, fault
from faults.subjects.disk import fill, small_disk
from faults.targets import Target
from support.commands.gilscope import eventually
from support.commands.serve import Service

_ABOVE = ("--capture-above", "10ms", "--mode", "contention")
_THREADS = 8
"""Each waits for seven switch intervals, which is longer than the limit."""


@fault(
    "capture_full_disk",
    "captures on a full disk: counted as failed, the file is named, the page has them",
    mounts=True,
)
def _capture_full_disk(bench: Bench) -> None:
    folder = small_disk(bench, 16)
    fill(folder / "rest")
    target = bench.target(threads=_THREADS)
    service = bench.serve("-p", str(target.pid), *_ABOVE, "--capture-dir", str(folder))
    _fails(bench, service, target, folder, "No space left")
    left = {path.name for path in folder.iterdir()} - {"rest"}
    bench.equal(Verdict.LEAK, set(), left, "files left")


@fault("capture_folder_gone", "folder of captures removed meanwhile: likewise")
def _capture_folder_gone(bench: Bench) -> None:
    folder = bench.folder / "captures"
    folder.mkdir()
    # Told apart by what only this one's command line has.
    service = bench.serve("--match", str(bench.folder), *_ABOVE, "--capture-dir", str(folder))
    folder.rmdir()
    target = bench.target(threads=_THREADS)
    _fails(bench, service, target, folder, "No such file")
    bench.equal(Verdict.LEAK, False, folder.exists(), "the folder was made again")


@fault(
    "capture_rotation",
    "processes killed while they are captured, one file kept: it is whole, and of the last one",
)
def _capture_rotation(bench: Bench) -> None:
    folder = bench.folder / "captures"
    folder.mkdir()
    options = ("--capture-dir", str(folder), "--capture-files", "1")
    service = bench.serve("--match", str(bench.folder), *_ABOVE, *options)
    for _ in bench.times(2, 10):
        target = bench.target(threads=_THREADS, may_end=True)
        bench.sees(service, target)
        os.kill(target.pid, signal.SIGKILL)
        _is_whole(bench, folder)
    last = bench.target(threads=_THREADS)
    eventually(partial(_is_captured, folder, last.pid))
    _is_whole(bench, folder)
    bench.lives(service)


def _fails(bench: Bench, service: Service, target: Target, folder: Path, reason: str) -> None:
    """Expect that the capture of *target* failed for *reason*, and that this is told."""
    counts = eventually(lambda: _told(bench, service, "failed"))
    assert counts is not None
    bench.equal(Verdict.WRONG_NUMBER, (1, 0), (counts["failed"], counts["written"]), "captures")
    said = service.command.says("could not capture process ")
    words = f"could not capture process {target.pid}: {folder}"
    bench.expect(Verdict.UNCLEAR_MESSAGE, words in said and reason in said, said[-300:])
    page = service.get("/capture?number=1&form=json")
    bench.equal(Verdict.WRONG_NUMBER, target.pid, json.loads(page.text)["process"]["pid"], "page")


def _told(bench: Bench, service: Service, outcome: str) -> Mapping[str, float] | None:
    samples = bench.lives(service).samples("gilscope_captures_total")
    counts = {sample.labels["outcome"]: sample.value for sample in samples}
    return counts if counts[outcome] else None


def _is_captured(folder: Path, pid: int) -> bool:
    return any(f"-{pid}-" in each.name for each in folder.glob("gilscope-*.json"))


def _is_whole(bench: Bench, folder: Path) -> None:
    """Expect that what is in *folder* can be read, and nothing half."""

    def settled() -> bool:
        return len(list(folder.iterdir())) <= 1

    eventually(settled)
    for file in folder.iterdir():
        bench.expect(Verdict.LEAK, file.name.startswith("gilscope-"), f"left: {file.name}")
        json.loads(file.read_text())
