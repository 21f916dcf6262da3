"""Whatever names a traced program gives to things, they are text on every page."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from gilscope.model.gil import Refusal, Tally
from gilscope.model.stm_log import LogGroup, StmReport
from gilscope.reports.gil.html import report as html_report
from gilscope.reports.stm_log import html as stm_log_html
from gilscope.series.lately import Lately, RecentHolder, RecentPair, SlowHolder
from gilscope.stm_log.merge import merge
from gilscope.web.page import page
from gilscope.web.page.agent import SelfPortrait
from support.recordings.gil import MS, PROCESS, convoy
from support.recordings.html import hostile
from support.recordings.transactions import stm_observation
from support.reports.html_tree import Element, parse
from support.reports.scraped import AGENT
from support.stm_log.following import followed_log
from support.stm_log.reading import file_of
from support.stm_log.writer import LogWriter, marker

_HOSTILE = "<script>alert(1)</script>\"'&"
_HARMLESS = _HOSTILE.translate({ord(char): "x" for char in "<>\"'&"})
_SHOWN_OF_A_BUILD = 12


def _log(name: str) -> bytes:
    writer = LogWriter()
    for number in range(9):
        writer.add(number, 1, "START").add(number, 1, "WRITE_READ", marker(1, name, name))
        writer.add(number, 1, "ABORT")
    return writer.content


def _report(name: str) -> str:
    return html_report.render(hostile(name))


def _untrusted_report(name: str) -> str:
    recording = hostile(name)
    return html_report.render(
        replace(recording, observation=replace(recording.observation, invalid=name))
    )


def _stm_report(name: str) -> str:
    files = tuple(file_of(_log(name) + b"\0", name=each) for each in (name, f"{name}.fork1"))
    logs = tuple(file.logs[0] for file in files)
    report = StmReport(files, (LogGroup(merge(logs), logs),), {(name, 1): name}, None)
    return stm_log_html.render(report)


def _page(name: str) -> str:
    seen = replace(convoy().observation, process=replace(PROCESS, name=name, python=name))
    broken = replace(seen, process=replace(seen.process, pid=1), invalid=name)
    pair = RecentPair(name, name, name, 30 * MS)
    slow = SlowHolder(name, Tally(20 * MS, 1), 20 * MS)
    agent = replace(
        AGENT,
        trap_costs_ns={name: 5.0},
        tables=(replace(AGENT.tables[0], name=name, entries=60_000),),
    )
    live = stm_observation()
    figures = page.Figures(
        [seen, broken],
        [Refusal(7, name, name, name)],
        SelfPortrait(agent, None),
        {
            PROCESS.pid: Lately(
                60_000 * MS,
                is_all=False,
                lost_ns=40 * MS,
                holders=(RecentHolder(name, name, 30 * MS),),
                pairs=(pair,),
                slow_holders=(slow,),
            )
        },
        page.Transactions(
            [
                replace(live, process=replace(live.process, name=name)),
                stm_observation(invalid=name, pid=2),
            ],
            [followed_log(_log(name), name=name, problem=name)],
        ),
    )
    return page.render(figures)


_PAGES = [_report, _untrusted_report, _stm_report, _page]


def _elements(top: Element) -> Iterator[tuple[str, tuple[str, ...]]]:
    for element in top.below():
        yield element.name, tuple(element.attributes)


def _text(rendered: str) -> str:
    top = parse(rendered)
    for script in top.all("script"):
        script.children.clear()
    return top.text


@pytest.mark.parametrize("render", _PAGES)
def test_names_make_no_elements_and_no_attributes(render: Callable[[str], str]) -> None:
    """
    Neither does one end any: the page consists of the same as with harmless names.
    """
    assert list(_elements(parse(render(_HARMLESS)))) == list(_elements(parse(render(_HOSTILE))))


@pytest.mark.parametrize("render", _PAGES)
def test_names_are_shown_as_they_are(render: Callable[[str], str]) -> None:
    """
    All of them, without a letter more or less: nothing is escaped twice.
    """
    expected, shown = _text(render(_HARMLESS)), _text(render(_HOSTILE))

    for length in (len(_HOSTILE), _SHOWN_OF_A_BUILD):
        expected = expected.replace(_HARMLESS[:length], _HOSTILE[:length])
    assert expected == shown


def test_every_kind_of_name_is_on_a_page() -> None:
    """
    As often as it is given; the script of the report has it as data.
    """
    data = json.loads(parse(_report(_HOSTILE)).one("script", id="data").text)

    assert [27, 4, 9, 23] == [_text(render(_HOSTILE)).count(_HOSTILE) for render in _PAGES]
    assert [[_HOSTILE, 0, 2, 0, _HOSTILE]] == data["frames"]
    assert [[_HOSTILE, _HOSTILE]] == data["files"]
