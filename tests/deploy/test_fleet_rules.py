"""The recording rules for fleets: their form, what they need, and what they yield."""

import re
import subprocess
from pathlib import Path

import pytest
import yaml

from support.paths import ROOT
from support.prometheus.rules import known_labels
from support.prometheus.tools import prometheus_tool

_RULES = ROOT / "deploy" / "prometheus" / "gilscope-fleet.rules.yml"
_CASES = _RULES.with_name("gilscope-fleet.rules_test.yml")
_NAME = re.compile(r"\b(?:\w+:)?gilscope_\w+(?::\w+)?")


def _records() -> list[dict[str, str]]:
    (group,) = yaml.safe_load(_RULES.read_text())["groups"]
    rules: list[dict[str, str]] = group["rules"]
    return rules


def _promtool(*arguments: str | Path) -> tuple[int, str]:
    command = [prometheus_tool("promtool"), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def test_promtool_accepts_the_rules() -> None:
    """
    Prometheus' own linter finds neither faults nor duplicates.
    """
    code, said = _promtool("check", "rules", "--lint=all", "--lint-fatal", _RULES)

    assert 0 == code, said


def test_rules_yield_figures_of_services() -> None:
    """
    The figures of the cases are added up over instances and pids, each service by itself.
    """
    code, said = _promtool("test", "rules", _CASES)

    assert 0 == code, said


def test_rules_read_what_is_exported_or_recorded() -> None:
    """
    Of agents, of the rules about processes, or of these rules themselves.
    """
    known = {*known_labels(), *(rule["record"] for rule in _records())}
    read = {name for rule in _records() for name in _NAME.findall(rule["expr"])}

    assert set() == read - known


def test_each_rule_has_a_case() -> None:
    """
    No figure is recorded that nothing was compared with.
    """
    (case,) = yaml.safe_load(_CASES.read_text())["tests"]

    assert [rule["record"] for rule in _records()] == [
        each["expr"] for each in case["promql_expr_test"]
    ]


@pytest.mark.parametrize("place", range(7))
def test_cases_tell_broken_rules(place: int, tmp_path: Path) -> None:
    """
    The cases fail where a figure is not the one of the rule.
    """
    content = yaml.safe_load(_RULES.read_text())
    rule = content["groups"][0]["rules"][place]
    rule["expr"] = f"2 * ({rule['expr']}) + 1"
    broken, cases = tmp_path / _RULES.name, tmp_path / _CASES.name
    broken.write_text(yaml.safe_dump(content))
    of_processes = ROOT / "dashboards" / "rules" / "gil.yml"
    cases.write_text(
        _CASES.read_text().replace("../../dashboards/rules/gil.yml", str(of_processes))
    )

    code, said = _promtool("test", "rules", cases)

    assert 1 == code
    assert f'expr: "{rule["record"]}"' in said
