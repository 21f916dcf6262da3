"""What a run has said, as values: what is kept, and what goes onto the page."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from kernels.checks import CHECKS

__all__ = ["Outcome", "dumped", "failures", "loaded", "outcome_of", "replaced"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one kernel."""

    suite: str
    release: str = ""
    version: str = ""
    """The second half of ``uname -a``."""
    links: bool = False
    tables_may_grow: bool = False
    programs: Mapping[str, int] = field(default_factory=dict)
    """How many were loaded, by what was asked for; 0 where the kernel has refused one."""
    refused: Mapping[str, str] = field(default_factory=dict)
    """The verifier's last words by program."""
    missing: Mapping[str, str] = field(default_factory=dict)
    """What ``gilscope doctor`` misses there, by the name of its check."""
    tests: Mapping[str, str] = field(default_factory=dict)
    """``passed``, ``passed again``, ``failed`` or ``skipped`` by the id of the test."""
    is_whole: bool = False
    """The machine has said its last word, and switched itself off."""


def outcome_of(suite: str, text: str, *, ended: bool) -> Outcome:
    """Return what the lines of a machine say; those that are no JSON object say nothing."""
    lines = list(_lines(text))
    kernel = next((line for line in lines if line["what"] == "kernel"), {})
    tests: dict[str, str] = {}
    for line in lines:
        if line["what"] == "test":
            tests[line["test"]] = _after(tests.get(line["test"]), line["outcome"])
    loads = [line for line in lines if line["what"] == "loaded"]
    return Outcome(
        suite=suite,
        release=kernel.get("release", ""),
        version=kernel.get("version", ""),
        links=kernel.get("links", False),
        tables_may_grow=kernel.get("tables_may_grow", False),
        programs={line["request"]: line["programs"] for line in loads},
        refused={name: words for line in loads for name, words in line.get("refused", {}).items()},
        missing={
            line["check"]: line["found"]
            for line in lines
            if line["what"] == "doctor" and line["status"] == "missing"
        },
        tests=tests,
        is_whole=ended and any(line["what"] == "done" for line in lines),
    )


def failures(outcome: Outcome) -> list[str]:
    """Return in words what is not as it has to be; nothing: the kernel has passed."""
    found = [f"{name} was refused: {words}" for name, words in outcome.refused.items()]
    found += [f"nothing was loaded for {name}" for name, n in outcome.programs.items() if not n]
    found += [f"doctor misses {name}: {words}" for name, words in outcome.missing.items()]
    for check in CHECKS:
        how = outcome.tests.get(check.test, "not run")
        if how != "passed":
            found.append(f"{check.test}: {how}")
    if not outcome.is_whole:
        found.append("the machine did not come to its end")
    return found


def loaded(text: str) -> list[Outcome]:
    """Return what was kept by `dumped`."""
    return [Outcome(**kept) for kept in json.loads(text)]


def dumped(outcomes: Iterable[Outcome]) -> str:
    """Return *outcomes* as the text that is kept."""
    return json.dumps([asdict(outcome) for outcome in outcomes], indent=1) + "\n"


def replaced(
    before: Iterable[Outcome], now: Iterable[Outcome], order: Iterable[str]
) -> list[Outcome]:
    """Return the outcomes *before* with those of *now* in place of the same suites', in *order*."""
    found = {outcome.suite: outcome for outcome in (*before, *now)}
    return [found[suite] for suite in order if suite in found]


def _after(before: str | None, outcome: str) -> str:
    """Return how a test has ended, by what was known of it and what is told now."""
    if before == "failed":
        return before  # and not passed, but taken down
    is_again = before in {"rerun", "passed again"}
    return "passed again" if is_again and outcome == "passed" else outcome


def _lines(text: str) -> Iterable[dict[str, Any]]:
    for line in text.splitlines():
        try:
            said = json.loads(line)
        except ValueError:
            continue
        if isinstance(said, dict) and "what" in said:
            yield said
