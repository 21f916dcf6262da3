"""docs/kernels.md: what was run on which kernel, in the middle of what is written by hand."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from kernels.checks import CHECKS, Check
from kernels.results import Outcome, failures, loaded
from support.paths import ROOT

__all__ = ["PAGE", "RECORDED", "page", "rendered"]

PAGE = ROOT / "docs" / "kernels.md"
RECORDED = Path(__file__).with_name("recorded.json")
_BY_HAND = Path(__file__).with_name("page.md")
_PLACE = "{results}\n"
_CELLS = {"passed": "exact", "passed again": "exact when made again", "failed": "**wrong**"}


def page() -> str:
    """Return the page by what is kept here."""
    return rendered(_BY_HAND.read_text(), loaded(RECORDED.read_text()))


def rendered(by_hand: str, outcomes: Sequence[Outcome]) -> str:
    """Return *by_hand* with two tables of *outcomes* at its ``{results}``."""
    before, place, after = by_hand.partition(_PLACE)
    if not place:
        raise ValueError(f"there is no {_PLACE!r} in what is written by hand")
    lines = [*_kernels(outcomes), "", *_counts(outcomes)]
    return before + "\n".join(lines) + "\n" + after


def _kernels(outcomes: Iterable[Outcome]) -> list[str]:
    lines = [
        "| kernel | programs taken | probes are | tables | all as it has to be |",
        "| --- | --- | --- | --- | --- |",
    ]
    for outcome in outcomes:
        cells = (
            f"{outcome.release} (Debian, {outcome.suite})",
            _programs(outcome),
            "links" if outcome.links else "perf events",
            "grow" if outcome.tables_may_grow else "in full from the start",
            "no" if failures(outcome) else "yes",
        )
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def _programs(outcome: Outcome) -> str:
    if outcome.refused:
        return f"refused: {', '.join(f'`{name}`' for name in sorted(outcome.refused))}"
    asked = {name.partition(",")[0]: count for name, count in outcome.programs.items()}
    return f"all {sum(asked.values())}" if all(outcome.programs.values()) else "not all"


def _counts(outcomes: Sequence[Outcome]) -> list[str]:
    kernels = [".".join(outcome.release.split(".")[:2]) for outcome in outcomes]
    lines = [
        f"| what was counted | {' | '.join(kernels)} |",
        f"| --- |{' --- |' * len(kernels)}",
    ]
    lines += [
        f"| {check.feature}: {check.what} | "
        f"{' | '.join(_cell(check, outcome) for outcome in outcomes)} |"
        for check in CHECKS
    ]
    return lines


def _cell(check: Check, outcome: Outcome) -> str:
    return _CELLS.get(outcome.tests.get(check.test, ""), "not run")
