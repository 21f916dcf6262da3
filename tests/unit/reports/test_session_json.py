"""The report for programs on all that was recorded."""

import json
from collections.abc import Callable
from dataclasses import replace

import pytest
from jsonschema import ValidationError

from gilscope.model.gil import Recording, Refusal
from gilscope.reports import session_json
from support.commands.json_reports import assert_fits_schema
from support.recordings.gil import convoy, full_mode, session_of, with_edges
from support.recordings.locks import lock_recording
from support.recordings.transactions import stm_recording


def _spoilt() -> Recording:
    recording = full_mode()
    return replace(recording, observation=replace(recording.observation, invalid="why"))


@pytest.mark.parametrize("make", [convoy, full_mode, with_edges, _spoilt])
def test_report_fits_its_schema(make: Callable[[], Recording]) -> None:
    """
    With and without holds, edges, and figures that can be trusted.
    """
    assert_fits_schema(json.loads(session_json.render(session_of(make()))))


def test_sums_are_of_all_processes() -> None:
    """
    Each has a report of its own, and those that are not in it are told.
    """
    refused = Refusal(12, "odd.py", "no GIL", "none")
    session = replace(
        session_of(convoy(), with_edges()),
        transactions=(stm_recording(),),
        refusals=(refused,),
        left_out=3,
    )
    report = json.loads(session_json.render(session))
    one, other = report["processes"]

    assert_fits_schema(report)
    assert one["totals"]["wait_s"] + other["totals"]["wait_s"] == report["wait_s"]
    assert one["totals"]["waits"] + other["totals"]["waits"] == report["waits"]
    assert (1, 3) == (len(report["transactions"]), report["left_out"])
    assert [{"pid": 12, "name": "odd.py", "reason": "no GIL", "remedy": "none"}] == report[
        "refused"
    ]


def test_locks_fit_the_schema_traced_or_not() -> None:
    """
    With what could not be known as null.
    """
    traced, refused = lock_recording(), lock_recording(invalid="too old", has_totals=False)
    session = replace(session_of(convoy()), locks=(traced, refused))
    report = json.loads(session_json.render(session))

    assert_fits_schema(report)
    assert [True, False] == [each["valid"] for each in report["locks"]]


def test_a_line_is_one_item() -> None:
    """
    Of every list, so that two reports can be compared by diff.
    """
    session = session_of(with_edges())
    lines = session_json.render(session).splitlines()
    report = session_json.report(session)
    (process,) = report["processes"]
    lists = [value for value in process.values() if isinstance(value, list) and value]
    of_process = 2 + len(process) + len(lists) + sum(map(len, lists))

    assert json.loads(json.dumps(report)) == json.loads("\n".join(lines))
    assert 2 + len(report) + of_process + 1 == len(lines)


def test_another_report_does_not_fit() -> None:
    """
    A key that is missing, one that nobody knows, and a number of no stack's kind are found.
    """
    report = session_json.report(session_of(with_edges()))
    (process,) = report["processes"]
    edge = {**process["edges"][0], "waiter": "handle"}
    for wrong in (
        {key: value for key, value in report.items() if key != "wait_s"},
        {**report, "more": 1},
        {**report, "processes": [{**process, "edges": [edge]}]},
    ):
        with pytest.raises(ValidationError):
            assert_fits_schema(wrong)
