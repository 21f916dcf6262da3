"""Disks that are full, folders that cannot be written to, caches that somebody has damaged."""

import os
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from faults.bench import Bench
from faults.registry import Failed, Verdict, fault
from faults.targets import Target

__all__ = ["fill", "small_disk"]


def small_disk(bench: Bench, kib: int) -> Path:
    """Return a folder that has room for so much, until the fault is over."""
    folder = bench.folder / "small"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={kib}k", "none", str(folder)], check=True)
    bench.finally_do(lambda: subprocess.run(["umount", "-l", str(folder)], check=True))
    return folder


def fill(rest: Path) -> None:
    """Leave no page of the disk of *rest* free: the smallest report would fit into one."""
    with rest.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(1024))


@fault("full_disk_cache", "cache on a full disk: traces, nothing half is left", mounts=True)
def _full_disk_cache(bench: Bench) -> None:
    folder = small_disk(bench, 16)
    target = bench.target()
    extra = {"XDG_CACHE_HOME": str(folder)}
    for _ in range(2):
        bench.reports_rightly(target, extra=extra)
    left = [path.name for path in folder.rglob("tmp*") if path.is_file()]
    bench.equal(Verdict.LEAK, [], left, "half-written files")


@fault(
    "full_disk_output",
    "-o on a full disk: exit code 1, the disk is named, an older report is not destroyed",
    half=True,
    mounts=True,
)
def _full_disk_output(bench: Bench) -> None:
    folder = small_disk(bench, 16)
    report = folder / "report.html"
    report.write_text("the older one")
    fill(folder / "rest")
    target = bench.target()
    for form in ("html", "json"):
        line = ("record", "-p", str(target.pid), "-d", "0.5", "--format", form, "-o", str(report))
        outcome = bench.run(*line)
        bench.equal(Verdict.UNCLEAR_MESSAGE, 1, outcome.exit_code, outcome.messages[-200:])
        is_named = "No space left" in outcome.messages and str(report) in outcome.messages
        bench.expect(Verdict.UNCLEAR_MESSAGE, is_named, outcome.messages[-200:])
        words = f"what is in the place of the older report ({form})"
        bench.equal(Verdict.WRONG_NUMBER, b"the older one", report.read_bytes()[:40], words)
        others = {path.name for path in folder.iterdir()} - {"report.html", "rest"}
        bench.equal(Verdict.LEAK, set(), others, "files left")


@fault("homes", "read-only cache, no HOME, odd and relative XDG_CACHE_HOME: it traces all the same")
def _homes(bench: Bench) -> None:
    target = bench.target()
    for extra in (
        {"XDG_CACHE_HOME": "/proc/nothing"},
        {"XDG_CACHE_HOME": "relative/folder"},
        {"XDG_CACHE_HOME": "", "HOME": "/nonexistent"},
        {"XDG_CACHE_HOME": "", "HOME": ""},
        {"XDG_CACHE_HOME": "a\nb\udcff"},
        {"XDG_CACHE_HOME": "/dev/null"},
    ):
        try:
            bench.reports_rightly(target, extra=extra)
        except Failed as failed:
            bench.failures.append(Failed(failed.verdict, f"{extra}: {failed.seen}"))
    bench.equal(
        Verdict.LEAK, False, (bench.folder / "relative").exists(), "a folder of a relative path"
    )


def _into_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _into_link(path: Path) -> None:
    path.unlink()
    path.symlink_to("/etc/shadow")


_DAMAGES: dict[str, Callable[[Path], object]] = {
    "empty": lambda path: path.write_bytes(b""),
    "cut": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "garbage": lambda path: path.write_bytes(os.urandom(5000)),
    "other_owner": lambda path: os.chown(path, 65534, 65534),
    "world_writable": lambda path: path.chmod(0o666),
    "folder": _into_folder,
    "link": _into_link,
}


def _cached(bench: Bench, target: Target) -> list[Path]:
    """Return the files of a cache that an agent has just made."""
    bench.reports_rightly(target, extra=_own_cache(bench))
    files = [path for path in (bench.folder / "cache").rglob("*") if path.is_file()]
    bench.expect(Verdict.BROKEN, files, "nothing was cached")
    return files


def _own_cache(bench: Bench) -> dict[str, str]:
    return {"XDG_CACHE_HOME": str(bench.folder / "cache")}


def _damaged_cache(kind: str) -> None:
    @fault(f"damaged_cache_{kind}", f"cached files damaged ({kind}): it traces all the same")
    def check(bench: Bench) -> None:
        target = bench.target()
        for path in _cached(bench, target):
            _DAMAGES[kind](path)
        bench.reports_rightly(target, extra=_own_cache(bench))


for _kind in _DAMAGES:
    _damaged_cache(_kind)


@fault("cache_is_fifo", "FIFOs in the places of cached files: it starts all the same", half=True)
def _cache_is_fifo(bench: Bench) -> None:
    target = bench.target()
    for path in _cached(bench, target):
        path.unlink()
        os.mkfifo(path)
    command = bench.agent("record", "-p", str(target.pid), "-d", "0.5", extra=_own_cache(bench))
    try:
        # It compiles anew, which takes some seconds, on a busy machine many.
        command.process.wait(60)
    except subprocess.TimeoutExpired:
        command.process.kill()
        bench.expect(Verdict.HANGS, is_so=False, seen="waits for a FIFO in its cache")
    bench.equal(Verdict.AGENT_DIED, 0, command.process.returncode, command.messages[-200:])


@fault("file_size_limit", "RLIMIT_FSIZE 0: stdout in a pipe works, -o says why it does not")
def _file_size_limit(bench: Bench) -> None:
    target = bench.target()
    line = ["record", "-p", str(target.pid), "-d", "0.5"]
    # Its own words cannot go into a file either.
    wrapper = ("sh", "-c", 'prlimit --fsize=0 "$@" 2>&1 | cat', "sh")
    outcome = bench.run(*line, wrapper=wrapper)
    bench.expect(Verdict.AGENT_DIED, "(CPython 3.11" in outcome.output, outcome.output[-200:])
    outcome = bench.run(*line, "-o", str(bench.folder / "report"), wrapper=wrapper)
    bench.expect(Verdict.UNCLEAR_MESSAGE, "error: " in outcome.output, outcome.output[-200:])
