"""A dump for programs."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from jsonschema import ValidationError

from gilscope.model.gil import Edge, Tally
from gilscope.model.kinds import Kind
from gilscope.model.moment.dump import Dump, Trigger
from gilscope.reports.dump import json as dump_json
from support.commands.json_reports import assert_dump_fits_schema, frames_of
from support.recordings.dump import HOLDER, WAITER, abba, held


def _capture() -> Dump:
    return replace(
        held(),
        trigger=Trigger(9, 510_000_000, 500_000_000),
        pairs=(Edge(Kind.CONVOY, WAITER, HOLDER, Tally(3_000_000_000, 9)),),
        pairs_ns=30_000_000_000,
    )


def _report(dump: Dump) -> dict[str, Any]:
    report: dict[str, Any] = json.loads(dump_json.render(dump))
    return report


@pytest.mark.parametrize("make", [held, abba, _capture])
def test_a_dump_fits_its_schema(make: Callable[[], Dump]) -> None:
    """
    Whatever is known, and on one line as well.
    """
    line = dump_json.render_line(make())

    assert_dump_fits_schema(_report(make()))
    assert "\n" not in line
    assert _report(make()) == json.loads(line)


def test_stacks_are_written_once() -> None:
    """
    Two threads that stand in the same place have the same number.
    """
    report = _report(held())
    one, other = (each["stacks"][0]["stack"] for each in report["threads"][1:3])

    assert one == other
    assert ["work"] == [frame["function"] for frame in frames_of(report, one)]
    assert len(report["stacks"]) == len(
        {each["stack"] for t in report["threads"] for each in t["stacks"]}
    )


def test_a_deadlock() -> None:
    """
    Both sides, in the order in which they wait for each other.
    """
    report = _report(abba())

    assert [
        [
            {"tid": 7, "waits_for": "lock", "address": "0x7000"},
            {"tid": 8, "waits_for": "gil", "address": "0x5000"},
        ]
    ] == report["deadlocks"]
    assert {"address": "0x7000", "owner": 8} == report["threads"][0]["lock"]
    assert report["verdict"][0].startswith("deadlock: thread 7 (MainThread")


def test_a_capture() -> None:
    """
    It says why it was taken, and who kept whom waiting before.
    """
    report = _report(_capture())

    assert {"tid": 9, "waited_s": 0.51, "limit_s": 0.5} == report["trigger"]
    assert (30.0, 3.0) == (report["pairs_s"], report["pairs"][0]["wait_s"])


def test_the_schema_refuses_another_form() -> None:
    """
    A key that is missing is a change of form.
    """
    report = _report(held())
    del report["gils"][0]["holder"]

    with pytest.raises(ValidationError):
        assert_dump_fits_schema(report)
