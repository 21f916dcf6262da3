"""What is made of the lines that a machine has written."""

import json
from dataclasses import replace

from kernels.checks import CHECKS
from kernels.page import PAGE, page, rendered
from kernels.results import Outcome, dumped, failures, loaded, outcome_of, replaced

_KERNEL = {"what": "kernel", "release": "5.10.0-1-amd64", "version": "#1", "links": False}
_GOOD = Outcome(
    suite="bullseye",
    release="5.10.0-1-amd64",
    version="#1",
    programs={"GIL": 29, "GIL, with regions": 29, "locks": 9},
    tests={check.test: "passed" for check in CHECKS},
    is_whole=True,
)


def _text(*lines: dict[str, object]) -> str:
    return "".join(f"{json.dumps(line)}\n" for line in lines)


def _test(outcome: str, phase: str = "call") -> dict[str, object]:
    return {"what": "test", "test": "a", "outcome": outcome, "phase": phase, "why": ""}


def test_lines_become_an_outcome() -> None:
    """
    Each kind of line has its place, and what is none is passed over.
    """
    text = _text(
        _KERNEL,
        {"what": "loaded", "request": "GIL", "programs": 0, "refused": {"on_wait": "too large"}},
        {"what": "loaded", "request": "locks", "programs": 9},
        {"what": "doctor", "check": "bpf", "status": "ok", "found": "works"},
        {"what": "doctor", "check": "probes", "status": "missing", "found": "refused"},
        _test("passed"),
        {"what": "done", "exit_code": 0},
    )

    assert Outcome(
        suite="bullseye",
        release="5.10.0-1-amd64",
        version="#1",
        programs={"GIL": 0, "locks": 9},
        refused={"on_wait": "too large"},
        missing={"probes": "refused"},
        tests={"a": "passed"},
        is_whole=True,
    ) == outcome_of("bullseye", f"\0noise\n[1]\n{text}", ended=True)


def test_a_test_counts_as_it_ends() -> None:
    """
    One that passes only when it is made again is no exact count; one whose end fails has failed.
    """
    again = outcome_of("sid", _text(_test("rerun"), _test("passed")), ended=True)
    torn = outcome_of("sid", _text(_test("passed"), _test("failed", "teardown")), ended=True)
    never = outcome_of("sid", _text(_test("failed"), _test("passed", "teardown")), ended=True)

    assert ["passed again", "failed", "failed"] == [
        each.tests["a"] for each in (again, torn, never)
    ]


def test_what_has_not_ended_is_not_whole() -> None:
    """
    Neither a machine that was stopped, nor one that switched itself off too early.
    """
    done = _text({"what": "done", "exit_code": 0})

    assert not outcome_of("sid", done, ended=False).is_whole
    assert not outcome_of("sid", "", ended=True).is_whole


def test_failures_are_told() -> None:
    """
    A refusal, a feature that nothing was loaded for, a test that was skipped, an early end.
    """
    first = CHECKS[0].test

    assert [] == failures(_GOOD)
    for how in ("skipped", "passed again"):
        tests = {**_GOOD.tests, first: how}
        assert [f"{first}: {how}"] == failures(replace(_GOOD, tests=tests))
    assert [
        "on_wait was refused: too large",
        "nothing was loaded for GIL",
        "doctor misses probes: refused",
        "the machine did not come to its end",
    ] == failures(
        replace(
            _GOOD,
            programs={"GIL": 0},
            refused={"on_wait": "too large"},
            missing={"probes": "refused"},
            is_whole=False,
        )
    )


def test_what_is_kept_is_read_again() -> None:
    """
    A newer outcome of a suite takes the place of the older one, and the order is that asked for.
    """
    newer = replace(_GOOD, release="5.10.0-2-amd64")
    other = replace(_GOOD, suite="bookworm")
    kept = replaced([other, _GOOD], [newer], ["bullseye", "bookworm", "trixie"])

    assert [newer, other] == kept == loaded(dumped(kept))


def test_tables() -> None:
    """
    A row a kernel, and one a count.
    """
    first, second, *_ = CHECKS
    bad = replace(
        _GOOD,
        refused={"on_wait": "too large"},
        tests={first.test: "passed again", second.test: "failed"},
    )
    lines = rendered("before\n{results}\nafter\n", [_GOOD, bad]).splitlines()

    assert ("before", "after") == (lines[0], lines[-1])
    kernel = "| 5.10.0-1-amd64 (Debian, bullseye)"
    assert f"{kernel} | all 38 | perf events | in full from the start | yes |" == lines[3]
    assert (
        f"{kernel} | refused: `on_wait` | perf events | in full from the start | no |" == lines[4]
    )
    assert "| what was counted | 5.10 | 5.10 |" == lines[6]
    assert f"| {first.feature}: {first.what} | exact | exact when made again |" == lines[8]
    assert f"| {second.feature}: {second.what} | exact | **wrong** |" == lines[9]
    assert lines[10].endswith("| exact | not run |")


def test_the_page_is_what_was_recorded() -> None:
    """
    `make docs` has been run since the last results, and nobody edits the tables.
    """
    assert page() == PAGE.read_text()
