"""The bench of a fleet: agents made of real scrapes, and the page about them."""

import json
import re
import subprocess
from dataclasses import asdict

import pytest
import yaml
from bench.fleet_agents import continued, rendered
from bench.fleet_families import DROPS, FLEET_RULES, drop_rules, panel_reads, rule_reads
from bench.fleet_page import Fleet, Measured, Mode, page
from bench.fleet_prometheus import Asked, Question, configuration

from support.paths import ROOT
from support.prometheus.rules import exported_labels
from support.prometheus.tools import prometheus_tool
from support.reports.scraped import parse

_FIRST = """\
# HELP waits_total So many.
# TYPE waits_total counter
waits_total{process="a.py",pid="7",after="a pid=\\"7\\""} 10
# TYPE lost_seconds_total counter
lost_seconds_total{pid="7"} 0.5
# TYPE waiting gauge
waiting{pid="7"} 3
"""
_LAST = (
    _FIRST.replace("} 10", "} 30").replace("} 0.5", "} 1.5").replace("} 3\n", "} 4\n")
    + '# TYPE new_total counter\nnew_total{pid="8"} 5\n'
)


@pytest.mark.parametrize(
    ("after_s", "values"), [(0, (30, 1.5, 4, 5)), (5, (40, 2.0, 4, 5)), (0.2, (30, 1.52, 4, 5))]
)
def test_counters_grow_as_they_have_grown(after_s: float, values: tuple[float, ...]) -> None:
    """
    Numbers stay whole; gauges and what was not there before stay as they are.
    """
    text = rendered(continued(_FIRST, _LAST, apart_s=10), after_s)

    found = [sample.value for family in parse(text).families for sample in family.samples]
    assert values == tuple(found)


def test_what_does_not_grow_is_served_as_it_was() -> None:
    """
    To the character, but for numbers that are written otherwise.
    """
    assert _FIRST == rendered(continued(_FIRST, _FIRST, apart_s=1), 100)


def test_counters_that_ran_back_do_not_shrink() -> None:
    """
    A process that has begun anew between the scrapes stands still.
    """
    assert _FIRST == rendered(continued(_LAST, _FIRST, apart_s=10), 100)


def test_growth_in_no_time_is_refused() -> None:
    """
    Nothing can be told of two scrapes at once.
    """
    with pytest.raises(ValueError, match="0 s apart: no growth"):
        continued(_FIRST, _LAST, apart_s=0)


def test_each_agent_is_an_instance() -> None:
    """
    Prometheus asks each for its own path, and promtool takes the configuration.
    """
    config = configuration("127.0.0.1:99", 2, (), 15)

    assert [{"targets": ["0", "1"]}] == config["scrape_configs"][0]["static_configs"]
    _promtool_accepts(config)


def _promtool_accepts(config: object) -> None:
    check = [prometheus_tool("promtool"), "check", "config", "/dev/stdin"]
    done = subprocess.run(
        check, input=json.dumps(config), capture_output=True, text=True, check=False
    )
    assert 0 == done.returncode, done.stdout + done.stderr


def _fleet() -> Fleet:
    question = Question("overview", "Processes A", "up", is_instant=True)
    series = (
        ("gilscope_build_info", {}),
        *(
            ("gilscope_gil_hold_seconds_bucket", {"process": "fight.py", "le": str(le)})
            for le in range(3)
        ),
        *(("gilscope_gil_waiting_threads", {"process": name}) for name in ("fight.py", "io.py")),
    )
    measured = Measured(
        agents=100,
        version="2.42.0",
        up=100,
        head_series=1000,
        recorded_series=50,
        service_series=7,
        samples_per_s=40.0,
        resident_bytes=4_000_000,
        resident_after_bytes=6_000_000,
        cpu_share=0.5,
        wal_bytes=8000,
        samples=4000,
        groups=(("gilscope-gil", 0.25, 0.5),),
        asked=(Asked(question, 0.5, 3), Asked(question, 1.5, 4, "too much")),
    )
    mode = Mode("auto", series, 1234, 99, ("fight.py", "io.py"))
    return Fleet((("CPU", "one"),), 15, (mode,), (measured,))


def test_page_has_what_was_measured() -> None:
    """
    And what follows from that for more hosts: (1 + 3 * 2.5) series of each, 6000 bytes a series.
    """
    text = page(_fleet())

    assert "| auto | 4 | 1 | 1 | 6 | 1,234 | 99 |" in text
    assert "| bytes of the WAL a sample | 2.0 |" in text
    assert "| overview | 2 | 2.0 | 1.5 | Processes A | 4 | 1 |" in text
    assert "| 10,000 | 3 | 0.09 million | 5,667 | 1,417 | 0.5 GB |" in text
    assert "| `gilscope_gil_(hold\\|switch_latency)_seconds_bucket` | 3 | 50.0% |" in text
    assert [] == re.findall(r"\{[a-z_]+\}", text)


def test_figures_are_kept() -> None:
    """
    The page can be written again from them; those of another form are refused.
    """
    raw = json.loads(json.dumps(asdict(_fleet())))

    assert page(_fleet()) == page(Fleet.read(raw))
    del raw["modes"][0]["services"]
    with pytest.raises(ValueError, match="another form: 'services'; measure again"):
        Fleet.read(raw)


def test_what_is_dropped_is_exported_and_shown_and_no_rule_needs_it() -> None:
    """
    Each drop rule drops something that dashboards read, and no expression of a rule does.
    """
    exported = exported_labels()
    needed = {name for _, name, is_description in rule_reads() if not is_description}
    shown = {name for _, name in panel_reads()}
    for regex in DROPS:
        assert [name for name in exported if re.fullmatch(regex, name)]
        assert [name for name in shown if re.fullmatch(regex, name)]
        assert [] == [name for name in needed if re.fullmatch(regex, name)]


def test_rules_are_read_with_their_descriptions() -> None:
    """
    One of them asks for pairs of places, in its description alone.
    """
    pairs = "gilscope_gil_blocked_seconds_total"

    assert {("GilscopeGilStuck", pairs, True)} == {
        each for each in rule_reads() if each[1] == pairs
    }


def test_prometheus_takes_what_the_page_says() -> None:
    """
    Its pieces of configuration, together, are one that promtool accepts.
    """
    text = (ROOT / "bench" / "fleet.md").read_text().replace("{drops}", drop_rules())
    pieces = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    drop, load, write = map(yaml.safe_load, pieces)

    assert ["rules/*.yml", FLEET_RULES.name] == load["rule_files"]
    _promtool_accepts({"scrape_configs": [{"job_name": "gilscope", **drop}], **write})
