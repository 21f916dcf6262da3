"""``gilscope record``: both ends of waits, and the source lines that stand beside them."""

import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from accuracy.truth import exact_counts, started
from support.commands.gilscope import gilscope, gilscope_started
from support.commands.json_reports import frames_of, only_process, state_of
from support.paths import WORKLOADS

pytestmark = pytest.mark.live

_PYTHON = "/usr/bin/python3"
_CONVOY, _CALL = "GIL_CONVOY", "GIL_BLOCKING_CALL"


def _place(file: str, function: str, line: str) -> tuple[str, str]:
    path = WORKLOADS / file
    numbers = [n for n, text in enumerate(path.read_text().splitlines(), 1) if text.strip() == line]
    assert 1 == len(numbers)
    return f'File "{path}", line {numbers[0]}, in {function}', line


def _blocks(words: str, lines: list[str]) -> list[list[str]]:
    firsts = [number for number, line in enumerate(lines) if words in line]
    return [lines[first + 1 : lines.index("", first)] for first in firsts]


def test_both_ends_and_who_does_not_let_go_are_the_known_ones(tmp_path: Path) -> None:
    """
    The waiter stands in one call, the holder in another, 23 times; 7 times it does not let go.
    """
    waits = tmp_path / "waits.json"
    formats = ("--full", "--format", "text", "--format", f"json={waits}")
    with (
        started([_PYTHON], "exact_count.py") as workload,
        gilscope_started("record", "-p", str(workload.pid), *formats) as command,
    ):
        command.says("Tracing the GIL of")
        truth = exact_counts(workload.run())
        workload.finish()
        outcome = command.outcome()
    lines = outcome.output.splitlines()
    report = only_process(waits.read_text())
    waiting, its_line = _place(
        "contended.py", "Waiter.wait", "KEEPING.contended_wait(ctypes.c_void_p(self.address))"
    )
    holding, holds_line = _place("contended.py", "hold", "KEEPING.contended_hold(")
    waiter = [
        waiting,
        f"    {its_line}",
        f"  called from {_place('exact_count.py', 'wait_in_c', 'waiter.wait()')[0]}",
        f"  called from {_place('exact_count.py', 'waiter', 'wait_in_c(own)')[0]}",
    ]
    holder = [
        holding,
        f"    {holds_line}",
        "  called from "
        + _place("exact_count.py", "hold_in_c", "hold(clock, [waiter], ROUNDS_NS)")[0],
        f"  called from {_place('exact_count.py', 'holder', 'hold_in_c(clock, other)')[0]}",
    ]
    edges = {
        edge["kind"]: edge
        for edge in report["edges"]
        if ["Waiter.wait"] == [each["function"] for each in frames_of(report, edge["waiter"])[:1]]
    }

    assert [*waiter, "held by", *holder] in _blocks(f"x {_CONVOY}), ", lines)
    assert [*waiter, "held by", *holder] in _blocks(f"x {_CALL}), ", lines)
    assert holder in _blocks(" of drop latency (", lines)
    assert truth.waiter.total.wait_ns / 1e9 == pytest.approx(
        sum(edge["wait_s"] for edge in edges.values()), rel=0.02
    )
    (slow_drop,) = [
        slow_drop
        for slow_drop in report["slow_drops"]
        if ["hold"] == [each["function"] for each in frames_of(report, slow_drop["holder"])[:1]]
    ]
    assert "whole" == state_of(report, slow_drop["holder"])
    # A round of 27.5 ms is asked for after 5 ms.
    assert slow_drop["longest_s"] >= 0.0225
    if truth.is_exact:
        assert {_CONVOY: 7, _CALL: 16} == {kind: edge["waits"] for kind, edge in edges.items()}
        assert 7 == slow_drop["requests"]


# Two threads that are in each other's way until standard input ends.
_CRUNCH = "sum(range(20000))  # é"
_APP = f"""\
# coding: latin-1
import sys, threading
def crunch():
    while True:
        {_CRUNCH}
for _ in range(2):
    threading.Thread(target=crunch, daemon=True).start()
print("ready", flush=True)
sys.stdin.read()
"""


def _leave(_file: Path) -> None:
    pass


def _edit(file: Path) -> None:
    file.write_text(_APP.replace("é", "e"), encoding="latin-1")


def _delete(file: Path) -> None:
    file.unlink()


def _sources_of(argument: Path, meddle: Callable[[Path], None]) -> set[str]:
    """Return the lines of the report that follow the place at which both threads compute."""
    with subprocess.Popen(
        [_PYTHON, str(argument)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        assert b"ready\n" == process.stdout.readline()
        meddle(argument)
        outcome = gilscope("record", "-p", str(process.pid), "-d", "0.5", "--full")
        lines = outcome.output.splitlines()
        process.stdin.close()
    places = [number for number, line in enumerate(lines) if line.endswith("line 5, in crunch")]
    assert [] != places
    return {lines[number + 1].strip() for number in places} & {_CRUNCH, _CRUNCH.replace("é", "e")}


@pytest.mark.beside_others
@pytest.mark.parametrize(
    ("meddle", "sources"), [(_leave, {_CRUNCH}), (_edit, set()), (_delete, set())]
)
def test_source_line_is_that_of_the_running_program_or_none(
    meddle: Callable[[Path], None], sources: set[str], tmp_path: Path
) -> None:
    """
    A file in the encoding of its cookie is read; one that was edited or deleted is not.
    """
    file = tmp_path / "app.py"
    file.write_text(_APP, encoding="latin-1")

    assert sources == _sources_of(file, meddle)


@pytest.mark.beside_others
def test_source_line_of_an_application_in_an_archive(tmp_path: Path) -> None:
    """
    An application that is a zip file has its lines in there.
    """
    with zipfile.ZipFile(tmp_path / "app.pyz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("__main__.py", _APP.encode("latin-1"))

    assert {_CRUNCH} == _sources_of(tmp_path / "app.pyz", _leave)
