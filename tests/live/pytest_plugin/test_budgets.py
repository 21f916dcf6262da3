"""A run of pytest with ``--gilscope``: what its tests lose, and budgets that they pass."""

import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from xml.etree import ElementTree as ET

import pytest

from support.paths import AGENT, WORKLOADS

pytestmark = pytest.mark.live

_FILE = WORKLOADS / "pytest_budgets.py"
_NOBODY = 65534


@dataclass(frozen=True)
class _Run:
    exit_code: int
    output: str
    failures: Mapping[str, str]
    """By test: what it says."""
    properties: Mapping[str, Mapping[str, str]]


def _command(folder: Path, words: Sequence[str]) -> list[str]:
    # As if nothing were installed, so that the plugin is this checkout's.
    plugin = ("-p", "no:gilscope", "-p", "gilscope.pytest_plugin.plugin", "-p", "no:cacheprovider")
    where = ("-c", "/dev/null", "--rootdir", str(folder), f"--junit-xml={folder / 'junit.xml'}")
    ini = ("-o", "python_files=*.py", "-o", "junit_family=xunit1")
    return [sys.executable, "-m", "pytest", *plugin, *where, *ini, *words, str(_FILE)]


def _run(folder: Path, *words: str, user: int | None = None) -> _Run:
    done = subprocess.run(
        _command(folder, words),
        env={"PYTHONPATH": str(AGENT), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        user=user,
    )
    failures: dict[str, str] = {}
    properties: dict[str, dict[str, str]] = {}
    xml = folder / "junit.xml"
    for case in ET.parse(xml).iter("testcase") if xml.exists() else ():  # noqa: S314 - pytest has written it
        name = str(case.get("name"))
        properties[name] = {
            str(each.get("name")): str(each.get("value")) for each in case.iter("property")
        }
        for failure in case.iter("failure"):
            failures[name] = str(failure.get("message"))
    return _Run(done.returncode, done.stdout + done.stderr, failures, properties)


@pytest.fixture(scope="module")
def traced(tmp_path_factory: pytest.TempPathFactory) -> _Run:
    """All tests of the file, with budgets."""
    return _run(tmp_path_factory.mktemp("traced"), "--gilscope", "-k", "not tracer and not after")


def test_figures_are_what_was_lost(traced: _Run) -> None:
    """
    Each test has its own, and asking for them costs nothing that counts.
    """
    for name, properties in traced.properties.items():
        if "truth_ns" in properties:
            truth_ns, lost_ns = int(properties["truth_ns"]), int(properties["gil_wait_ns"])
            # Not before it has a CPU does a thread find out that it has to wait.
            assert 0.95 * truth_ns <= lost_ns <= int(properties["most_ns"]), name
            assert properties["gil_costliest"].startswith("hold_in_c (pytest_budgets.py:"), name
    assert 4 == sum("truth_ns" in each for each in traced.properties.values())


def test_budgets_that_are_passed_fail_their_tests(traced: _Run) -> None:
    """
    With the figures and the costliest place; who keeps to its budget passes.
    """
    assert 1 == traced.exit_code
    assert {
        "test_over_its_time",
        "test_over_its_share",
        "test_that_fails_by_itself",
        "test_with_a_budget_of_nonsense",
    } == set(traced.failures)
    over, share = (
        traced.failures[f"test_over_its_{what}"].splitlines() for what in ("time", "share")
    )
    assert over[0].startswith("Failed: lost ")
    assert over[0].endswith(" waiting for the GIL; its budget is 250 ms")
    assert "while hold_in_c (pytest_budgets.py:" in over[1]
    assert share[0].endswith("its budget is 50 % of its time")


def test_other_failures_stay_what_they_are(traced: _Run) -> None:
    """
    A test that fails by itself says why; what is no budget is said before the test runs.
    """
    assert "Failed: of its own" == traced.failures["test_that_fails_by_itself"]
    assert traced.failures["test_with_a_budget_of_nonsense"].startswith(
        "Failed: gil_budget: 'long' is not a time such as 10s"
    )


def test_the_costliest_come_first_in_the_summary(traced: _Run) -> None:
    """
    With what they lost; tests that lost next to nothing are one line.
    """
    _, _, summary = traced.output.partition("time lost waiting for the GIL (gilscope)")
    # What pytest says of failures behind it is longer in some places than in others.
    summary, _, _ = summary.partition("short test summary info")
    lines = [line for line in summary.splitlines() if "::" in line and ": " in line]

    told = [line.partition(": ")[0].rpartition("::")[2] for line in lines]
    lost = {name: int(each.get("gil_wait_ns", 0)) for name, each in traced.properties.items()}

    assert told == sorted(told, key=lambda name: -lost[name])
    assert 5 == len(told)
    assert "; costliest: hold_in_c (pytest_budgets.py:" in lines[0]
    assert "1 other test: " in summary


def test_without_the_option_nothing_is_checked(tmp_path: Path) -> None:
    """
    Markers are known, and not applied, whoever runs the tests.
    """
    seen = _run(tmp_path, "--strict-markers", "-k", "not tracer")

    assert ["test_that_fails_by_itself"] == list(seen.failures)
    assert "gilscope" not in seen.output
    assert not any("gil_wait_ns" in each for each in seen.properties.values())


@pytest.mark.parametrize("words", [(), ("-n", "2")], ids=["alone", "workers"])
def test_without_permission_it_says_what_to_do(words: Sequence[str]) -> None:
    """
    A usage error before any test runs.
    """
    with TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        seen = _run(Path(folder), "--gilscope", *words, user=_NOBODY)

    assert 4 == seen.exit_code
    assert "ERROR: --gilscope: " in seen.output
    assert "Run pytest as root, or without --gilscope: markers are not applied then." in seen.output
    assert "Traceback" not in seen.output


def test_a_budget_that_cannot_be_checked_is_not_kept(tmp_path: Path) -> None:
    """
    Once the tracer has ended, tests with a budget fail and say so; others pass.
    """
    seen = _run(tmp_path, "--gilscope", "-k", "tracer or after")
    ended = "Failed: --gilscope: gilscope has ended with code -9"

    assert {"test_that_loses_its_tracer": ended, "test_after_it": ended} == seen.failures
    assert "test_after_it_without_a_budget" in seen.properties


def test_workers_trace_themselves(tmp_path: Path) -> None:
    """
    With pytest-xdist the figures come from where the tests ran.
    """
    seen = _run(tmp_path, "--gilscope", "-n", "2", "-k", "over_its or within")

    assert {"test_over_its_time", "test_over_its_share"} == set(seen.failures)
    assert "test_within_its_budget: " in seen.output
