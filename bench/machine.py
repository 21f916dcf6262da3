"""Says what machine this is, and what versions of everything take part."""

import os
import platform
import subprocess
from pathlib import Path

from bench.measurement import Machine
from bench.peers import bcc_python, py_spy
from bench.tool import ToolFailed

import gilscope
from support.interpreters.interpreter import Interpreter

__all__ = ["StolenTime", "read_machine"]

_STOLEN = 7
# Guest time is part of user time: the first eight columns are the whole.
_COLUMNS = slice(1, 9)


class StolenTime:
    """Counts, from its making on, the CPU time that the hypervisor gave to others."""

    def __init__(self) -> None:
        self._before = _read_ticks()

    def share(self) -> float:
        """Return the stolen share of all CPU time since then."""
        spent = [now - before for before, now in zip(self._before, _read_ticks(), strict=True)]
        return spent[_STOLEN] / max(1, sum(spent))


def read_machine(interpreters: list[Interpreter]) -> Machine:
    """Return what the numbers hold for."""
    cpu = _read_fields(Path("/proc/cpuinfo"))
    return Machine(
        cpu=cpu.get("model name", platform.machine()),
        cpus=os.cpu_count() or 0,
        is_virtual="hypervisor" in cpu.get("flags", "").split(),
        memory_bytes=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        kernel=f"{platform.system()} {platform.release()}, {platform.machine()}",
        system=platform.freedesktop_os_release().get("PRETTY_NAME", "unknown"),
        versions=(
            ("gilscope", gilscope.__version__),
            ("the agent's Python", platform.python_version()),
            *(
                (f"Python `{each.name}`", _first_line(each.command("--version")))
                for each in interpreters
            ),
            ("BCC", _first_line([bcc_python(), "-c", "import bcc; print(bcc.__version__)"])),
            ("bpftrace", _first_line(["bpftrace", "--version"])),
            ("py-spy", _py_spy_version()),
        ),
    )


def _first_line(command: list[str]) -> str:
    try:
        done = subprocess.run(command, check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError):
        return "not installed"
    # CPython 2.7 says it to standard error.
    return (done.stdout.strip() or done.stderr.strip()).splitlines()[0]


def _py_spy_version() -> str:
    try:
        return _first_line([str(py_spy()), "--version"])
    except ToolFailed:
        return "not installed"


def _read_ticks() -> list[int]:
    first_line = Path("/proc/stat").read_text().partition("\n")[0]
    return [int(ticks) for ticks in first_line.split()[_COLUMNS]]


def _read_fields(path: Path) -> dict[str, str]:
    pairs = (line.partition(":") for line in path.read_text().splitlines())
    return {name.strip(): value.strip() for name, _, value in pairs}
