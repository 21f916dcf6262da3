"""What holds for every JSON report, whatever was recorded."""

import json
from collections.abc import Mapping
from typing import Any

import jsonschema
import pytest

from support.paths import AGENT

__all__ = [
    "assert_consistent",
    "assert_dump_fits_schema",
    "assert_fits_schema",
    "frames_of",
    "only_process",
    "state_of",
]


_DUMP_SCHEMA = json.loads((AGENT / "gilscope/reports/dump/dump.schema.json").read_text())
_SCHEMA = json.loads((AGENT / "gilscope/reports/gil/record.schema.json").read_text())


def only_process(text: str) -> dict[str, Any]:
    """Return what the report in *text* says of the only process, with what it says of them all."""
    report = json.loads(text)
    assert_fits_schema(report)
    (process,) = report["processes"]
    assert ([], [], 0) == (report["transactions"], report["refused"], report["left_out"])
    return {**report, **process}


def frames_of(report: Mapping[str, Any], stack: int) -> list[Mapping[str, Any]]:
    """Return the frames of the stack with that number, the innermost first."""
    return [report["frames"][number] for number in report["stacks"][stack]["frames"]]


def state_of(report: Mapping[str, Any], stack: int) -> str:
    """Return how much of the stack with that number is known."""
    return str(report["stacks"][stack]["state"])


def assert_fits_schema(report: Mapping[str, Any]) -> None:
    """Assert that a report is what the published schema says, with no key beside it."""
    jsonschema.Draft202012Validator(_closed(_SCHEMA)).validate(report)


def assert_dump_fits_schema(report: Mapping[str, Any]) -> None:
    """Assert the same of a dump."""
    jsonschema.Draft202012Validator(_closed(_DUMP_SCHEMA)).validate(report)


def _closed(schema: Any) -> Any:
    """Return *schema* without room for further keys."""
    if isinstance(schema, list):
        return [_closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {key: _closed(value) for key, value in schema.items()}
    if "required" in schema:
        closed["additionalProperties"] = False
    return closed


def assert_consistent(report: Mapping[str, Any]) -> None:
    """Assert that the parts of what `only_process` returns add up."""
    totals, threads, interpreters = (report[key] for key in ("totals", "threads", "interpreters"))
    for key in ("waits", "forced_switches"):
        assert totals[key] == sum(thread[key] for thread in threads)
    for key in ("convoy_waits", "forced_switches", "drop_requests"):
        assert totals[key] == sum(one[key] for one in interpreters)
    causes = [cause for one in interpreters for cause in one["waits"].values()]
    kinds = [kind for thread in threads for kind in thread["kinds"].values()]
    assert totals["waits"] == sum(cause["waits"] for cause in causes)
    assert totals["waits"] == sum(kind["waits"] for kind in kinds)
    assert totals["waits"] == sum(count for _, count in report["histograms"]["wait"])
    for parts in (threads, causes, kinds):
        assert totals["wait_s"] == pytest.approx(sum(part["wait_s"] for part in parts), abs=1e-6)
