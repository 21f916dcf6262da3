"""Compiles programs with transactions and runs them round by round."""

import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from support.paths import WORKLOADS

__all__ = ["ITM", "RPYTHON", "StmProgram", "built", "running"]

_SOURCES = WORKLOADS / "stm"

RPYTHON: dict[str, tuple[str, ...]] = {
    "pie": ("-fPIE", "-pie", "-rdynamic"),
    "fixed": ("-fno-pie", "-no-pie", "-rdynamic"),
    "pie-stripped": ("-fPIE", "-pie", "-rdynamic", "-s"),
    "fixed-stripped": ("-fno-pie", "-no-pie", "-rdynamic", "-s"),
}
"""Ways to link what stands in for PyPy-STM, which exports names for its own libraries."""

ITM: dict[str, tuple[str, ...]] = {
    "shared": ("-fgnu-tm",),
    "shared-stripped": ("-fgnu-tm", "-s"),
    "static": ("-fgnu-tm", "-static"),
    "static-library": ("-fgnu-tm", "-l:libitm.a"),
    "static-stripped": ("-fgnu-tm", "-static", "-s"),
}
"""Ways to link a program with transactions of GCC's."""


@dataclass(frozen=True, slots=True)
class StmProgram:
    """A program that runs and waits to be told what to do."""

    process: subprocess.Popen[str]

    @property
    def pid(self) -> int:
        """Its process id."""
        return self.process.pid

    def tell(self, words: str = "run") -> str:
        """Let it do something, and return what it says when it has."""
        self.begin(words)
        return self.answer()

    def begin(self, words: str = "run") -> None:
        """Let it do something."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{words}\n")
        self.process.stdin.flush()

    def answer(self) -> str:
        """Return what it says when it has done that."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def finish(self) -> int:
        """Let it end, and return its exit status."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.process.wait(30)


def built(folder: Path, source: str, flags: Sequence[str]) -> Path:
    """Compile ``stm_programs/<source>.c``; skip where there is no compiler or no libitm."""
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed (apt install gcc)")
    program = folder / source
    options = [flag for flag in flags if not flag.startswith("-l")]
    libraries = [flag for flag in flags if flag.startswith("-l")]
    subprocess.run(
        ["gcc", "-O1", "-pthread", *options, "-o", program, _SOURCES / f"{source}.c", *libraries],
        check=True,
    )
    return program


@contextmanager
def running(program: Path, *arguments: str, **environment: str) -> Iterator[StmProgram]:
    """Start *program*, which is ready when the block begins; it has ended when the block has."""
    with subprocess.Popen(
        [program, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment,
        text=True,
    ) as process:
        started = StmProgram(process)
        try:
            assert "ready" == started.answer()
            yield started
        finally:
            if process.poll() is None:
                process.kill()
