"""The Prometheus rules: their form, their metrics, and that each alert fires when it should."""

import re
import subprocess
from pathlib import Path

import pytest
import yaml

from gilscope import __home__
from gilscope.gil.abi import Loss
from gilscope.model.histogram import BOUNDS_NS
from gilscope.model.kinds import Kind
from gilscope.model.locks import LockKind
from gilscope.model.moment.hold_state import State
from support.paths import AGENT, ROOT
from support.prometheus.rules import (
    RULES,
    Rule,
    exported_labels,
    known_labels,
    labels_of,
    queries_of,
    quickened,
    rules,
)
from support.prometheus.tools import prometheus_tool

_PUBLISHED = f"{__home__}/blob/main/"
_ALERTS = [rule for rule in rules() if rule.is_alert]
_TESTS = sorted((RULES / "tests").glob("*_test.yml"))

_EVENTS = (AGENT / "native" / "stm_log" / "events.c").read_text()
_VALUES = {
    "kind": {
        *(kind.value for kind in Kind),
        *(kind.value for kind in LockKind),
        *re.findall(r'"STM_(\w+)"', _EVENTS),
    },
    "le": {repr(ns / 1e9) for ns in BOUNDS_NS},
    "reason": {loss.value for loss in Loss},
    "state": {state.value for state in State},
    "window": {"full", "all"},
}
"""What labels with values of ours can be."""
_DURATION = re.compile(r"\b\d+[smhd]\b")
_MATCHER = re.compile(r'(\w+)=~?\\?"([^"%\\]+)\\?"')


def _promtool(*arguments: str | Path) -> tuple[int, str]:
    command = [prometheus_tool("promtool"), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("file", sorted(RULES.glob("*.yml")), ids=lambda path: path.name)
def test_promtool_accepts_the_rules(file: Path) -> None:
    """
    Prometheus' own linter finds neither faults nor duplicates.
    """
    code, said = _promtool("check", "rules", "--lint=all", "--lint-fatal", file)

    assert 0 == code, said


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule.name)
def test_rules_ask_for_what_is_exported(rule: Rule) -> None:
    """
    Every metric and label of an expression or a description is in the metric table.
    """
    known = known_labels()
    labels = labels_of(rule.expr, known)
    for query in queries_of(rule):
        labels |= labels_of(query, known)
    text = " ".join(rule.annotations.values())

    assert set() == set(re.findall(r"[$.][lL]abels\.(\w+)", text)) - labels


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule.name)
def test_rules_ask_for_values_that_occur(rule: Rule) -> None:
    """
    Kinds, reasons, windows and bounds of buckets are ones that gilscope exports.
    """
    text = " ".join((rule.expr, *rule.annotations.values()))
    asked = {
        (label, value)
        for label, values in _MATCHER.findall(text)
        for value in values.split("|")
        if label in _VALUES
    }

    assert set() == {(label, value) for label, value in asked if value not in _VALUES[label]}


@pytest.mark.parametrize(
    ("expr", "fault"),
    [
        ("gilscope_gil_waits_total", "gilscope_gil_waits_total is not exported"),
        ("gilscope_gil_wait", "gilscope_gil_wait is not exported"),
        ('gilscope_targets{stat="refused"}', r"there is no label \['stat'\]"),
        ("sum without (tid) (gilscope_gil_waiting_threads)", r"there is no label \['tid'\]"),
        (
            "sum by (role) (rate(gilscope_gil_thread_waits_total[5m])) / gilscope_targets",
            "are on one side only",
        ),
        ("up and on (job, pid) gilscope_build_info", r"there is no label \['pid'\]"),
    ],
)
def test_what_is_not_exported_is_found(expr: str, fault: str) -> None:
    """
    A wrong name, a wrong label, and sides that never meet are faults.
    """
    with pytest.raises(ValueError, match=fault):
        labels_of(expr, exported_labels())


@pytest.mark.parametrize("rule", _ALERTS, ids=lambda rule: rule.name)
def test_alerts_say_what_to_do(rule: Rule) -> None:
    """
    Each has a severity, a description with its value, and a runbook that exists and names it.
    """
    address = rule.annotations["runbook_url"]
    runbook = ROOT / address.removeprefix(_PUBLISHED)

    assert {"severity"} == set(rule.labels)
    assert rule.labels["severity"] in ("warning", "critical")
    assert {"summary", "description", "runbook_url"} == set(rule.annotations)
    assert "$value" in rule.annotations["description"]
    assert ROOT / "docs" / "runbooks" == runbook.parent
    assert f"# {rule.name}\n" in runbook.read_text()


def test_each_runbook_has_its_alert() -> None:
    """
    There is a page for each alert and no other.
    """
    pages = {
        f"{_PUBLISHED}docs/runbooks/{path.name}"
        for path in (ROOT / "docs" / "runbooks").glob("*.md")
    }

    assert {rule.annotations["runbook_url"] for rule in _ALERTS} == pages


@pytest.mark.parametrize("file", _TESTS, ids=lambda path: path.name)
def test_alerts_fire_when_they_should(file: Path) -> None:
    """
    The figures of the cases raise the alerts that the cases name, word for word.
    """
    code, said = _promtool("test", "rules", file)

    assert 0 == code, said


def test_each_alert_has_its_cases() -> None:
    """
    Firing, not firing and missing figures are tried of every alert.
    """
    named = [case["name"] for file in _TESTS for case in yaml.safe_load(file.read_text())["tests"]]

    assert [
        f"{rule.name} {what}"
        for rule in _ALERTS
        for what in ("fires", "does not fire", "without data")
    ] == sorted(named, key=_place)


def _place(name: str) -> int:
    alerts = [rule.name for rule in _ALERTS]
    return alerts.index(name.partition(" ")[0])


@pytest.mark.parametrize("always", [False, True], ids=["never", "always"])
@pytest.mark.parametrize("file", sorted(RULES.glob("*.yml")), ids=lambda path: path.name)
def test_cases_tell_broken_alerts(file: Path, *, always: bool, tmp_path: Path) -> None:
    """
    The cases of an alert fail where it never fires, and where it always does.
    """
    content = yaml.safe_load(file.read_text())
    alerts = [rule for rule in content["groups"][0]["rules"] if "alert" in rule]
    for alert in alerts:
        alert["expr"] = "vector(1)" if always else "vector(0) > 1"
        alert.pop("for", None)
    (tmp_path / file.name).write_text(yaml.safe_dump(content))
    (tmp_path / "tests").mkdir()
    cases = tmp_path / "tests" / f"{file.stem}_test.yml"
    cases.write_text((RULES / "tests" / cases.name).read_text())

    code, said = _promtool("test", "rules", cases)

    fail = ("does not fire", "without data") if always else ("fires",)
    names = [f"name: {alert['alert']} {what}," for alert in alerts for what in fail]
    assert 1 == code
    assert [] == [name for name in names if name not in said]


@pytest.mark.parametrize("file", sorted(RULES.glob("*.yml")), ids=lambda path: path.name)
def test_quick_copies_differ_in_durations_alone(file: Path) -> None:
    """
    What the live test evaluates are these rules, with short ranges and short patience.
    """
    original = file.read_text()
    quick = quickened(original)

    assert _DURATION.sub("", original) == _DURATION.sub("", quick)
    assert {"10s", "3s"} == set(_DURATION.findall(quick)) - {"1d"}
