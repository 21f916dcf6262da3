"""Free-threaded builds that have switched their GIL on: for which module."""

import json
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from gilscope.process.guarded_memory import GuardedMemory
from gilscope.process.reads import DirectReads
from gilscope.process.view import view_of
from gilscope.runtimes.registry import detect
from support.commands.gilscope import gilscope
from support.interpreters.known import FREE_THREADED, WITH_GIL_ON, Interpreter, find_interpreter
from support.paths import ROOT
from support.tracing.trace import command_of

pytestmark = [pytest.mark.live, pytest.mark.beside_others]

_MODULE = ROOT / "tests" / "support" / "interpreters" / "needs_gil.c"
# Modules of C code of its own, and of Python code; more than a small dict has room for.
_IMPORTS = """\
import sys, warnings
warnings.simplefilter("ignore")
sys.path.insert(0, sys.argv[1])
import collections, json, types
for number in range(int(sys.argv[2])):
    sys.modules["made_%d" % number] = types.ModuleType("made")
for name in sys.argv[3:]:
    __import__(name)
sys.stdout.write("x\\n")
sys.stdout.flush()
sys.stdin.readline()
"""
_EVERY_VERSION = ("free-threaded-3.13", "free-threaded-3.14", "free-threaded-3.15")


@contextmanager
def _importing(command: Sequence[str], folder: Path, *names: str, more: int = 0) -> Iterator[int]:
    """Yield the pid of a program that has imported *names*, and made so many *more* modules."""
    library = folder / "needs_gil.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, _MODULE], check=True)
    with subprocess.Popen(
        [*command, "-c", _IMPORTS, str(folder), str(more), *names],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert b"x\n" == process.stdout.readline()
        yield process.pid
        process.kill()


def _needing(pid: int) -> tuple[str, ...]:
    build = detect(view_of(pid))
    with GuardedMemory(pid, [build.file.mapping]) as memory:
        needing = build.instance(memory, DirectReads()).modules_that_need_gil()
    build.close()
    return needing


@pytest.mark.parametrize("more", [0, 5_000])
@pytest.mark.parametrize("name", _EVERY_VERSION)
def test_the_module_is_found(name: str, more: int, tmp_path: Path) -> None:
    """
    And none of those that come with Python, nor one that is made of Python code.
    """
    command = command_of(find_interpreter(name))
    with _importing(command, tmp_path, "needs_gil", more=more) as pid:
        assert ("needs_gil",) == _needing(pid)


@pytest.mark.parametrize("interpreter", WITH_GIL_ON)
def test_where_it_was_asked_for_no_module_needs_it(
    interpreter: Interpreter, tmp_path: Path
) -> None:
    """
    Then the reports name none, and say since when it is on.
    """
    with _importing(command_of(interpreter), tmp_path) as pid:
        assert () == _needing(pid)
        found = f"--format=json={tmp_path}/found.json"
        outcome = gilscope("record", "-p", str(pid), "-d", "0.5", "--format", "text", found)
        diagnosis = gilscope("doctor", "-p", str(pid))

    (process,) = json.loads((tmp_path / "found.json").read_text())["processes"]
    assert (None, "start") == tuple(
        process["process"][key] for key in ("gil_needed_by", "gil_since")
    )
    assert "free-threaded with its GIL on from its start, as was asked for:" in outcome.output
    assert "on from the start, because PYTHON_GIL=1 or -X gil=1 asked for it" in " ".join(
        diagnosis.output.split()
    )


def test_pythons_with_a_gil_for_good_have_no_such_module(tmp_path: Path) -> None:
    """
    Whatever they import.
    """
    with _importing(["/usr/bin/python3"], tmp_path, "json") as pid:
        assert () == _needing(pid)


@pytest.mark.parametrize("interpreter", FREE_THREADED)
def test_reports_and_doctor_name_it(interpreter: Interpreter, tmp_path: Path) -> None:
    """
    In words and as JSON.
    """
    with _importing(command_of(interpreter), tmp_path, "needs_gil") as pid:
        found = f"--format=json={tmp_path}/found.json"
        outcome = gilscope("record", "-p", str(pid), "-d", "0.5", "--format", "text", found)
        diagnosis = gilscope("doctor", "-p", str(pid))

    (process,) = json.loads((tmp_path / "found.json").read_text())["processes"]
    assert ("needs_gil", None) == tuple(
        process["process"][key] for key in ("gil_needed_by", "gil_since")
    )
    assert "its GIL on, which module needs_gil needs:" in outcome.output
    assert "module needs_gil does not say that it can do without one" in " ".join(
        diagnosis.output.split()
    )
