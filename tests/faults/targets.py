"""Processes to be traced that can be seen to go on."""

import json
import mmap
import os
import struct
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from accuracy.truth import Workload, spoken_to
from support.commands.gilscope import eventually

__all__ = ["AS_NOBODY", "SYSTEM_PYTHON", "Target", "contending", "cpu_ns", "with_variable"]

SYSTEM_PYTHON = "/usr/bin/python3.11"
AS_NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
_PROGRAM = Path(__file__).with_name("programs") / "contend.py"
_MOST_THREADS = 512
_MEASURED_UNITS = 4000
"""The kernel adds up CPU time every few milliseconds: so much work takes a few of these."""
_MARK = "GILSCOPE_FAULT_TARGET"


class Target:
    """A contending process: it must live and go on, whatever is done to it."""

    def __init__(self, workload: Workload, pid: int, counts: mmap.mmap) -> None:
        self.workload = workload
        self.pid = pid
        self._counts = counts

    @property
    def progress(self) -> int:
        """How much it has computed so far."""
        counts = struct.unpack_from(f"={_MOST_THREADS}Q", self._counts)
        return sum(counts)

    @property
    def is_alive(self) -> bool:
        """Whether the process is there and no zombie."""
        try:
            return Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
        except OSError:
            return False

    def do(self, code: str) -> Any:
        """Have its main thread execute *code*; return what that put into ``result``."""
        self.workload.command(json.dumps(code))
        return self.workload.answer()["result"]

    def advances(self, by: int = 1) -> None:
        """Return as soon as it has computed *by* units more."""
        goal = self.progress + by
        eventually(lambda: self.progress >= goal)

    def cpu_ns_per_unit(self) -> float:
        """Return the CPU time that a unit takes now, the lesser of two measurements."""
        return min(self._measure() for _ in range(2))

    def _measure(self) -> float:
        before, before_ns = self.progress, cpu_ns(self.pid)
        self.advances(_MEASURED_UNITS)
        return (cpu_ns(self.pid) - before_ns) / (self.progress - before)


@contextmanager
def contending(  # noqa: PLR0913 - all have a default
    folder: Path,
    python: Sequence[str] = (SYSTEM_PYTHON,),
    *,
    threads: int = 2,
    prefix: Sequence[str] = (),
    program: Path = _PROGRAM,
    arguments: Sequence[str] = (),
) -> Iterator[Target]:
    """Start a target; it has ended when the block has. *prefix* are words in front of its command.

    The interpreter's own words are *python*; *arguments* follow those of the program.
    """
    path = folder / f"progress-{uuid.uuid4().hex}"
    path.write_bytes(bytes(8 * _MOST_THREADS))
    path.chmod(0o666)
    mark = uuid.uuid4().hex
    words = [*prefix, "env", f"{_MARK}={mark}", *python, str(program), str(path), str(threads)]
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as counts:
        with spoken_to([*words, *arguments]) as workload:
            (pid, *_) = eventually(lambda: with_variable(_MARK, mark, os.fsencode(str(path))))
            target = Target(workload, pid, counts)
            target.advances()
            yield target
        path.unlink()


def with_variable(name: str, value: str, argument: bytes = b"") -> list[int]:
    """Return the processes with that environment variable, and *argument* on the command line."""
    wanted = f"{name}={value}".encode()
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            # Memory of a process whose program is being replaced cannot be read.
            with suppress(OSError):
                if wanted in (folder / "environ").read_bytes().split(b"\0"):
                    line = (folder / "cmdline").read_bytes()
                    # `unshare --fork` has the same words and waits.
                    if not argument or (argument in line and b"unshare" not in line):
                        found.append(int(folder.name))
    return found


def cpu_ns(pid: int) -> int:
    """Return the CPU time that the living threads of *pid* have taken."""
    total = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        with suppress(OSError):
            total += int((task / "schedstat").read_text().split()[0])
    return total


def await_exit(pid: int, within_s: float = 60.0) -> bool:
    """Return whether *pid* has gone within that time."""
    deadline_s = time.monotonic() + within_s
    while Path(f"/proc/{pid}").exists():
        if time.monotonic() > deadline_s:
            return False
        time.sleep(0.01)
    return True
