"""Real logs, held against what is known of them."""

from collections.abc import Iterator, Mapping
from random import Random
from typing import Any

import pytest

from gilscope.model.stm_log import LogFile, StmReport
from gilscope.reports.stm_log import json as stm_log_json
from gilscope.reports.stm_log import original
from gilscope.stm_log.reader import LogReader, Reading
from gilscope.stm_log.source_lines import look_up
from support.paths import ROOT
from support.stm_log.corpus import CORPUS, content_of, needs_corpus, truth
from support.stm_log.reading import file_of, report_of

pytestmark = needs_corpus

_TOLERANCE_S = 2e-6
"""The truth was added up in floating point, in another order."""
_COUNTED = (
    "layout",
    "events_table",
    "records",
    "counts",
    "with_marker",
    "threads",
    "cut_tail_bytes",
    "backward_timestamps",
    "semantics",
)
_PRINTED = sorted(
    path.name.removesuffix(".txt")
    for path in (CORPUS / "orig").glob("*.txt")
    if ".part" not in path.name and ".with-sources" not in path.name
)
_MOST_PRINTED_OF_C8 = 40


def _original(name: str, semantics: str | None = None) -> LogFile:
    reading = Reading(semantics=semantics, is_original=True)
    content = content_of(name)
    reader = LogReader(name, reading, file_of(content, reading).logs)
    reader.feed(content)
    reader.finish()
    return reader.snapshot()


def _report(file: LogFile) -> Mapping[str, Any]:
    found: Mapping[str, Any] = stm_log_json.report(report_of(file))["files"][file.name]
    return found


def _entries(entries: list[dict[str, Any]]) -> dict[tuple[str, ...], tuple[Any, ...]]:
    return {
        (entry["kind"], *entry["markers"]): (
            entry["count"],
            pytest.approx(entry["lost_s"], abs=_TOLERANCE_S),
            pytest.approx(entry["paused_s"], abs=_TOLERANCE_S),
        )
        for entry in entries
    }


def _assert_equal(known: Mapping[str, Any], found: Mapping[str, Any]) -> None:
    assert {key: known[key] for key in _COUNTED if key in known} == {
        key: found[key] for key in _COUNTED if key in known
    }
    if "span_s" in known:
        assert known["span_s"] == pytest.approx(found["span_s"], abs=_TOLERANCE_S)
    for key, value in known["totals"].items():
        assert value == pytest.approx(found["totals"][key], abs=_TOLERANCE_S), key
    assert _entries(known["entries"]) == _entries(found["entries"])


@pytest.mark.parametrize("name", truth())
def test_figures_of_the_original_are_reproduced(name: str) -> None:
    """
    Counts are equal, and times to better than what is printed of them.
    """
    known, found = truth()[name], _report(_original(name))

    _assert_equal(known, found)
    if "after_gap" in known:
        assert known["gap"] == found["gap"]
        _assert_equal(known["after_gap"], found["after_gap"])
    else:
        assert found["gap"] is None
        assert found["after_gap"] is None


@pytest.mark.parametrize("name", [name for name, known in truth().items() if "s0" in known])
def test_figures_of_s0_are_reproduced(name: str) -> None:
    """
    They are charged as in the two texts of November 2014.
    """
    _assert_equal(truth()[name]["s0"], _report(_original(name, "S0")))


@pytest.mark.parametrize("name", _PRINTED)
def test_prints_of_the_original_are_reproduced(name: str) -> None:
    """
    Every letter and every blank is the same, in time lines as well.
    """
    log_name = name.removesuffix(".s0")
    stored = log_name if (CORPUS / log_name).exists() else f"{log_name}.xz"
    file = _original(stored, "S0" if name.endswith(".s0") else None)
    expected = (CORPUS / "orig" / f"{name}.txt").read_text()
    has_sources = [line for line in expected.splitlines() if line.startswith("    ")]
    folders = [CORPUS, CORPUS / "pypystm-programs"] if has_sources else []
    log = file.logs[0]
    markers = (marker for conflict in log.conflicts for marker in conflict.markers)
    most = _MOST_PRINTED_OF_C8 if log.layout == "L8" else None
    plain = report_of(file, most_entries=most)
    report = StmReport(plain.files, plain.groups, look_up(markers, folders), most)

    # Equals stand in no order, and some sources of the interpreter were there when it was printed.
    found = _blocks(original.render(report))
    assert [_without_interpreter(block) for block in _blocks(expected)] == [
        _without_interpreter(block) for block in found
    ]


def _blocks(text: str) -> list[str]:
    head, *entries = text.strip("\n").split("\n\n")
    return [head, *sorted(entries)]


def _without_interpreter(block: str) -> list[str]:
    lines: list[str] = []
    is_shown = True
    for line in block.splitlines():
        if is_shown or not line.startswith("    "):
            lines.append(line)
        is_shown = "/transaction.py" not in line
    return lines


def _pieces(content: bytes, random: Random) -> Iterator[bytes]:
    at = 0
    while at < len(content):
        size = random.choice((1, 3, 14, 100, 5000, 100_000))
        yield content[at : at + size]
        at += size


@pytest.mark.parametrize("name", truth())
def test_pieces_make_no_difference(name: str) -> None:
    """
    In whatever pieces a log comes, the same is found in it.
    """
    random = Random(name)  # noqa: S311 - has to be the same each time
    content = content_of(name)[:400_000]
    reader = LogReader(name)
    for piece in _pieces(content, random):
        reader.feed(piece)
    reader.finish()

    assert file_of(content, name=name) == reader.snapshot()


@pytest.mark.parametrize("name", truth())
def test_corrected_times_add_up(name: str) -> None:
    """
    No conflict has more than the totals, and what conflicts lost is what was aborted.
    """
    for log in file_of(content_of(name)).logs:
        totals = log.totals
        lost_ns = sum(conflict.lost_ns for conflict in log.conflicts)
        paused_ns = sum(conflict.paused_ns for conflict in log.conflicts)
        inside_ns = sum(
            ns for kind, (ns, _) in totals.waits.items() if kind != "STM_WAIT_FREE_SEGMENT"
        )

        assert totals.aborted_ns == lost_ns + totals.unexplained_ns
        assert paused_ns <= inside_ns
        assert totals.paused_ns <= inside_ns
        assert totals.unlogged_commit_ns <= totals.unfinished_ns
        assert log.counts.get("STM_TRANSACTION_COMMIT", 0) == totals.commits


def test_corpus_is_not_part_of_the_checkout() -> None:
    """
    It lies beside it.
    """
    assert not CORPUS.resolve().is_relative_to(ROOT)
