"""Small C programs with a lock of the GIL's shape, for tests that need no Python."""

import re
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from support.paths import WORKLOADS

__all__ = ["BUILDS", "Build", "build_program", "call_sites", "require_tools", "stripped"]

_SOURCE = WORKLOADS / "gil" / "lock.c"
_FUNCTION = re.compile(r"^[0-9a-f]+ <(?P<name>[^>]+)>:$")
_CALL = re.compile(r"^ *(?P<site>[0-9a-f]+):\s+call\b.*<(?P<callee>\w+)@")


@dataclass(frozen=True, slots=True)
class Build:
    """One way to compile the program."""

    name: str
    flags: tuple[str, ...]


_LINKS = {
    "shared": ("-shared", "-fPIC", "-fvisibility=hidden"),
    "pie": ("-fPIE", "-pie", "-rdynamic", "-DWITH_MAIN"),
    "fixed": ("-fno-pie", "-no-pie", "-rdynamic", "-DWITH_MAIN"),
    "no-plt": ("-shared", "-fPIC", "-fvisibility=hidden", "-fno-plt"),
}
BUILDS = tuple(
    Build(f"{link}{optimization}-{style.lower()}", (optimization, *flags, f"-D{style}"))
    for link, flags in _LINKS.items()
    for optimization in ("-O2", "-O3")
    for style in ("INLINED_YIELD", "SEPARATE_YIELD", "EXPORTED_YIELD")
)


@cache
def require_tools() -> None:
    """Skip the test where the tools that build and take apart programs are missing."""
    for tool in ("gcc", "strip", "objdump"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed (apt install gcc binutils)")


def build_program(build: Build, folder: Path, *extra: str) -> Path:
    """Compile and link the program with its symbols; skip where there is no compiler."""
    require_tools()
    target = folder / build.name
    subprocess.run(
        ["gcc", "-pthread", *build.flags, *extra, "-o", str(target), str(_SOURCE)], check=True
    )
    return target


def stripped(program: Path) -> Path:
    """Return a copy of a program without its symbol table."""
    target = program.with_name(f"{program.name}.stripped")
    subprocess.run(["strip", "--strip-all", "-o", str(target), str(program)], check=True)
    return target


def call_sites(program: Path, *callees: str) -> dict[str, dict[int, str]]:
    """Return where a disassembler sees calls of each of *callees*: address -> its function.

    Functions are without the suffix that a compiler gives to a part.
    """
    listing = subprocess.run(
        ["objdump", "--disassemble", "--no-show-raw-insn", str(program)],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    sites: dict[str, dict[int, str]] = {callee: {} for callee in callees}
    function = ""
    for line in listing.splitlines():
        if header := _FUNCTION.match(line):
            function = header["name"].partition(".")[0]
        elif (call := _CALL.match(line)) and call["callee"] in sites:
            sites[call["callee"]][int(call["site"], 16)] = function
    return sites
