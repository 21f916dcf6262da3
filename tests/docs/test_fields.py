"""FIELDS: every heading, kind, reason and JSON key that a user meets is explained, and no other."""

import json
import os
import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from accuracy.truth import started
from gilscope.exporter.stm_log import ERRORS
from gilscope.gil.abi import Loss
from gilscope.metrics.table import FAMILIES
from gilscope.model.diagnosis import Status
from gilscope.model.gil import BriefRelease, Recording, Refusal, Tally
from gilscope.model.kinds import Cause, Kind
from gilscope.model.moment.capture import Capture
from gilscope.model.stack import StackState
from gilscope.naming.places import IN_WORDS
from gilscope.reports import session_json
from gilscope.reports.gil.text import report as text_report
from gilscope.series.blocking import BlockingSeries
from gilscope.web.config.parse import KEYS
from gilscope.web.page import page
from support.commands.gilscope import gilscope
from support.docs.pages import DOCS, section, words_in_first_cells
from support.interpreters.known import found_or_skipped
from support.recordings.gil import (
    SERVING,
    convoy,
    full_mode,
    gil,
    session_of,
    with_edges,
    with_holders,
    with_traces,
)
from support.recordings.locks import lock_recording
from support.recordings.transactions import stm_observation
from support.stm_log.following import followed_log
from support.tracing.trace import command_of

_MAN = DOCS / "man"
_BY_NAME = {"kinds", "lost_events"}
"""JSON objects whose keys are kinds or reasons."""


def _fields(command: str, part: str = "") -> str:
    fields = section((_MAN / f"gilscope-{command}.8.md").read_text(), "## FIELDS")
    return section(fields, f"### {part}") if part else fields


def _keys(value: Any) -> set[str]:
    if isinstance(value, list):
        return {key for item in value for key in _keys(item)}
    if not isinstance(value, dict):
        return set()
    causes = {cause.value for cause in Cause}
    # `unknown` is a cause in one object, and why figures are null in another.
    found = set() if set(value) <= causes else set(value)
    for key, item in value.items():
        found |= set() if key in _BY_NAME else _keys(item)
    return found


def _two_interpreters(recording: Recording) -> Recording:
    seen = recording.observation
    totals = replace(seen.totals, gils=(*seen.totals.gils, gil(1)))
    return replace(recording, observation=replace(seen, totals=totals))


def _with_edges(recording: Recording) -> Recording:
    seen, model = recording.observation, with_holders().observation
    totals = replace(
        seen.totals,
        edges=model.totals.edges,
        slow_drops=model.totals.slow_drops,
        holder_samples=model.totals.holder_samples,
    )
    return replace(recording, observation=replace(seen, totals=totals))


def test_headings_of_the_report_are_explained() -> None:
    """
    Whatever stands above indented lines in the text report is in the table.
    """
    headings = {
        line.partition(":")[0] + ":" * (":" in line)
        for recording in (convoy(), full_mode(), with_holders())
        for line, following in pairwise(
            text_report.render(_two_interpreters(recording)).splitlines()
        )
        if not line.startswith((" ", "File ")) and following.startswith(" ")
    }

    assert {
        "Time lost, by thread role and kind",
        "Who held the GIL, by place (sampled)",
        "Who held the GIL, by thread role",
        "How long the holds lasted",
    } <= headings
    assert set() == headings - words_in_first_cells(_fields("record", "Text"))


def test_json_keys_of_a_recording_are_explained() -> None:
    """
    The table has every key of the report, and none that it has not.
    """
    briefly = (BriefRelease(SERVING, 1000, Tally(5_000_000, 1)),)
    recordings = [
        _with_traces(replace(each, brief_releases=briefly))
        for each in (with_holders(), _with_edges(full_mode()))
    ]
    refused = (Refusal(1, "a", "b", "c"),)
    keys = [
        _keys(session_json.report(replace(session_of(recording), refusals=refused)))
        for recording in recordings
    ]

    assert [words_in_first_cells(_fields("record", "JSON"))] * 2 == keys


def _with_traces(recording: Recording) -> Recording:
    observation = recording.observation
    traces = with_traces().observation.totals.traces
    totals = replace(observation.totals, traces=traces)
    return replace(recording, observation=replace(observation, totals=totals))


def test_both_ends_of_a_wait_are_explained() -> None:
    """
    The table has the lines of the report that are no headings of an indented part.
    """
    report = text_report.render(with_edges())
    words = (
        "Who kept whom waiting",
        "Both ends are known for",
        "held by",
        "Slow to drop the GIL",
    )

    assert set() == {word for word in words if f"\n{word}" not in report}
    assert set(words) <= words_in_first_cells(_fields("record", "Text"))
    assert {f"({words})" for words in IN_WORDS.values()} <= words_in_first_cells(
        _fields("record", "Text")
    )


@pytest.mark.parametrize("state", StackState)
def test_states_of_stacks_are_explained(state: StackState) -> None:
    """
    How much of a stack was seen is a word in the JSON.
    """
    assert f"`{state.value}`" in _fields("record", "JSON")


@pytest.mark.parametrize("kind", Kind)
def test_kinds_are_explained(kind: Kind) -> None:
    """
    Each kind of loss is defined once, and named where the report and its JSON are explained.
    """
    words = section((_MAN / "gilscope.8.md").read_text(), "### Kinds")

    assert kind.value in words_in_first_cells(words)
    assert f"`{kind.value}`" in _fields("record", "Text")
    assert f"`{kind.value}`" in _fields("record", "JSON")


@pytest.mark.parametrize("cause", Cause)
def test_causes_are_explained(cause: Cause) -> None:
    """
    The values of the label `after` are listed, and defined among the words.
    """
    words = section((_MAN / "gilscope.8.md").read_text(), "### Words")

    assert f"`{cause.value}`" in words
    assert f"`{cause.value}`" in _fields("serve", "Labels")


def test_reasons_for_lost_events_are_explained() -> None:
    """
    The table has every reason, and none that it has not.
    """
    assert {loss.value for loss in Loss} == words_in_first_cells(_fields("serve", "Lost events"))


def test_labels_are_explained() -> None:
    """
    The table has every label of every metric, and none that it has not.
    """
    labels = {label for family in FAMILIES for label in family.labels}

    assert labels == words_in_first_cells(_fields("serve", "Labels"))


def test_reasons_for_errors_in_logs_are_explained() -> None:
    """
    The table has every reason, and none that it has not.
    """
    assert set(ERRORS) == words_in_first_cells(_fields("serve", "Errors in STM logs"))


def test_keys_of_the_web_configuration_are_explained() -> None:
    """
    The table has every key, and none that it has not.
    """
    assert KEYS == words_in_first_cells(_fields("serve", "Web configuration"))


def test_columns_of_the_landing_page_are_explained() -> None:
    """
    The table has every column of the page, and none that it has not.
    """
    seen = with_holders().observation
    lately = BlockingSeries().lately([seen], most=5)
    refusals = [Refusal(7, "old.py", "too old", "Update it.")]
    html = page.main_part(
        page.Figures(
            [seen],
            refusals,
            lately=lately,
            transactions=page.Transactions([stm_observation()], [followed_log()]),
            locks=page.Locks([lock_recording().observation]),
            captures=[Capture(1, 0, 7, "app.py", ("held",), b"", b"")],
        )
    )
    columns = set(re.findall(r'<th scope="col"[^>]*>([^<]+)</th>', html))

    assert columns == words_in_first_cells(_fields("serve", "Landing page"))


def test_statuses_of_doctor_are_explained() -> None:
    """
    The table has every status, and none that it has not.
    """
    assert {status.value for status in Status} == words_in_first_cells(_fields("doctor", "Status"))


@pytest.mark.live
@pytest.mark.beside_others
def test_what_doctor_prints_is_explained(tmp_path: Path) -> None:
    """
    The tables have every check, feature and key of doctor's JSON, and no others.
    """
    # Of an older one it does not say how locks are seen.
    with started(command_of(found_or_skipped("debian-3.14")), "exact_count.py") as workload:
        outcome = gilscope(
            *("doctor", "--all", "-p", str(workload.pid), "--format", "json"),
            extra={"XDG_CACHE_HOME": os.fspath(tmp_path)},
        )
    report = json.loads(outcome.output)
    checks = [*report["checks"], *report["process"]["checks"]]

    assert {check["name"] for check in checks} == words_in_first_cells(_fields("doctor", "Checks"))
    assert {feature["name"] for feature in report["features"]} == words_in_first_cells(
        _fields("doctor", "Features")
    )
    assert _keys(report) == words_in_first_cells(_fields("doctor", "JSON"))
