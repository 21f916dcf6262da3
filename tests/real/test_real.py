"""Real programs: the report names the line that their owner can change, in all of its forms."""

import html
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from gilscope.reports.gil.text.screen import MOST_LINES
from support.commands.gilscope import gilscope
from support.commands.json_reports import assert_fits_schema, frames_of
from support.real.program import Program
from support.real.programs import FEW, MORE
from support.real.running import busy
from support.reports.scraped import parse

pytestmark = [pytest.mark.live, pytest.mark.beside_others, pytest.mark.slow]

_LEAST_SHARE = 0.8
_HOLDER = "gilscope_gil_holder_seconds_total"
_ROW = re.compile(r" *([0-9.]+)s +[0-9.]+ %  (.+), (?:mostly )?GIL_")
_ALL = bool(os.environ.get("GILSCOPE_ALL_PROGRAMS"))

_of_all = [
    *FEW,
    *(
        pytest.param(program, marks=pytest.mark.skipif(not _ALL, reason="opt-in: make test-real"))
        for program in MORE
    ),
]


@pytest.mark.parametrize("program", _of_all, ids=lambda program: program.name)
def test_report_names_the_line_to_change(program: Program, tmp_path: Path) -> None:
    """
    At least 80 % of the loss stands at its place, and text, page, JSON and metrics agree on that.
    """
    files = {form: tmp_path / form for form in ("text", "html", "json", "prometheus")}
    words = [word for form, file in files.items() for word in ("--format", f"{form}={file}")]
    with busy(program, tmp_path / "log") as pid:
        outcome = gilscope("record", "-p", str(pid), "-d", "4", "--format", "text", *words)
    assert 0 == outcome.exit_code, outcome.messages
    report = json.loads(files["json"].read_text())
    assert_fits_schema(report)
    if program.says_uncontended:
        _assert_held(report, outcome.output, program)
        return
    worst = max(report["processes"], key=lambda process: process["totals"]["wait_s"])
    lost_s = _lost_s(worst, program)
    all_s = sum(edge["wait_s"] for edge in worst["edges"])
    rows = _rows(files["text"].read_text(), worst["process"], program)

    assert lost_s >= _LEAST_SHARE * all_s
    # Functions with less than 1 % are not shown, and seconds are rounded.
    assert lost_s - 0.02 * all_s <= sum(rows.values()) <= lost_s + 0.01
    _assert_native(worst, files["text"].read_text(), program)
    place = next(iter(rows))
    assert html.escape(place.strip("()")) in files["html"].read_text()
    assert place in outcome.output
    assert len(outcome.output.splitlines()) <= MOST_LINES
    own_s, other_s = _in_metrics(files["prometheus"], worst, program)
    if not program.functions:
        assert 0 == own_s + other_s
        return
    # A line of the function that cost next to nothing may have no series of its own.
    assert own_s - 1e-6 <= lost_s <= own_s + other_s + 1e-6
    assert other_s <= 0.02 * all_s


def _assert_held(report: Mapping[str, Any], screen: str, program: Program) -> None:
    """Assert that the place has the GIL for most of the time, and that the screen names it."""
    process = max(report["processes"], key=lambda process: process["totals"]["held_s"])
    held_s = sum(
        float(held["held_s"])
        for held in process["held_by"]
        if program.has_frames(frames_of(process, held["holder"]))
    )

    assert held_s >= _LEAST_SHARE * process["totals"]["sampled_s"]
    assert program.says_uncontended in screen
    assert any(f"{function} ({program.file}:" in screen for function in program.functions)


def _assert_native(process: Mapping[str, Any], text: str, program: Program) -> None:
    """Assert that the C function that kept the GIL is named, and no other one."""
    if not program.native:
        return
    file, function = program.native
    details = {held["detail"] for held in process["held_up"] if held["state"] == "native"}

    assert details
    assert all(each.startswith(file) and function in each for each in details), details
    assert all(f"C code ({each})" in text for each in details)


def _lost_s(process: Mapping[str, Any], program: Program) -> float:
    """Return what was lost while the holder was in the program's functions."""
    return sum(
        float(edge["wait_s"])
        for edge in process["edges"]
        if program.has_frames(frames_of(process, edge["holder"]))
    )


def _rows(text: str, process: Mapping[str, Any], program: Program) -> dict[str, float]:
    """Return the seconds of the program's places, by place, in the process' own section."""
    section = text[text.rindex(f"{process['name']}, pid {process['pid']}, CPython") :]
    lines = section.splitlines()
    lines = lines[lines.index("Whose code kept the GIL") + 1 :]
    rows = [_ROW.match(line) for line in lines[: lines.index("")]]
    return {row[2]: float(row[1]) for row in rows if row and program.has_place(row[2])}


def _in_metrics(file: Path, process: Mapping[str, Any], program: Program) -> tuple[float, float]:
    """Return what is at the program's places, and at other places of the application."""
    places = [
        (sample.labels["holder"], sample.value)
        for family in parse(file.read_text()).families
        for sample in family.samples
        if sample.name == _HOLDER
        and sample.labels["pid"] == str(process["process"]["pid"])
        and sample.labels["application"] == "true"
    ]
    own = [value for place, value in places if program.has_place(place)]
    return sum(own), sum(value for place, value in places if place == "other")
