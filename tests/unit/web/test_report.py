"""A report of the last minutes: what can be asked for, and what it is about."""

import json
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from http import HTTPStatus

import pytest

from gilscope.model.gil import GilObservation, Refusal
from gilscope.model.kinds import Kind, Mode
from gilscope.model.timeline import Moment, Span
from gilscope.model.transactions import StmObservation
from gilscope.series.past import Past
from gilscope.web.report import FORMS, Reporter
from support.commands.json_reports import assert_fits_schema, only_process
from support.recordings.gil import (
    CRUNCHING,
    MS,
    PROCESS,
    SERVING,
    convoy,
    full_mode,
    observation,
    with_holders,
)
from support.recordings.transactions import stm_observation
from support.reports import pprof
from support.reports.html_tree import parse

_S = 1000 * MS
_FAR = 1 << 30
"""No process of this machine."""


def _seen(at_ns: int, seen: GilObservation, pid: int = _FAR, *, ago_s: int = 100) -> GilObservation:
    """Return *seen* as of *at_ns*, of a process that was attached to *ago_s* before."""
    return replace(
        seen,
        process=replace(PROCESS, pid=pid),
        since_ns=at_ns - ago_s * _S,
        totals=replace(seen.totals, at_ns=at_ns),
    )


def _reporter(
    *seen: GilObservation, past: Past[GilObservation] | None = None, mode: Mode = Mode.AUTO
) -> Reporter:
    def refusals() -> Sequence[Refusal]:
        return (Refusal(99, "old.py", "CPython 3.5 is too old", "Use a later one."),)

    return Reporter(lambda: seen, past or Past(), refusals, mode=mode)


def _now() -> int:
    return time.monotonic_ns()


def test_transactions_are_told_since_that_time_too() -> None:
    """
    Beside those of a GIL, or alone; one that is asked for alone is told alone.
    """
    now = _now()
    early = replace(stm_observation(pid=_FAR), since_ns=now - 100 * _S)
    early = replace(early, totals=replace(early.totals, at_ns=now - 30 * _S))
    late = replace(early, totals=replace(early.totals, at_ns=now, commits=37))
    past: Past[StmObservation] = Past()
    past.enter(now - 30 * _S, [early])
    reporter = Reporter(
        lambda: [_seen(now, convoy().observation, 7)], Past(), live=(lambda: [late], past)
    )

    status, _, body = reporter.answer(f"form=json&last=30&pid={_FAR}")
    _, _, page = reporter.answer("form=html")

    assert HTTPStatus.OK == status
    report = json.loads(body)
    assert (7, 30.0) == (report["totals"]["commits"], report["duration_s"])
    assert b"GIL report" in page
    assert b"tries were aborted" in page


def test_sums_are_those_since_the_observation_nearest_to_that_time() -> None:
    """
    What was lost before is not in it, and it says how long it is about.
    """
    now = _now()
    past: Past[GilObservation] = Past()
    early = _seen(now - 30 * _S, convoy().observation)
    early = replace(early, since_ns=now - 100 * _S)
    past.enter(now - 30 * _S, [early])
    late = _seen(now, with_holders().observation)
    more = replace(
        late.totals,
        threads=tuple(
            replace(one, lost={kind: tally + tally for kind, tally in one.lost.items()})
            for one in late.totals.threads
        ),
    )
    _, _, body = _reporter(replace(late, totals=more), past=past).answer(
        "form=json&last=30&pid=1073741824"
    )
    report = only_process(body.decode())

    assert 30.0 == report["duration_s"]
    assert pytest.approx(1.94) == report["totals"]["wait_s"]


def test_all_forms_are_made() -> None:
    """
    Each with its type, and kept by nobody in between.
    """
    reporter = _reporter(_seen(_now(), with_holders().observation))
    answers = {form: reporter.answer(f"form={form}") for form in FORMS}

    assert {HTTPStatus.OK} == {status for status, _, _ in answers.values()}
    assert FORMS == {form: headers["Content-Type"] for form, (_, headers, _) in answers.items()}
    assert {"no-store"} == {headers["Cache-Control"] for _, headers, _ in answers.values()}
    assert_fits_schema(json.loads(answers["json"][2]))
    assert answers["html"] == reporter.answer("") or answers["html"][0] == HTTPStatus.OK
    assert b"<!doctype html>" in answers["html"][2]
    assert ("gil_hold", 10 * MS) == pprof.read(answers["pprof"][2]).period


def test_text_is_one_screen_or_all_of_it() -> None:
    """
    As `record` prints it.
    """
    reporter = _reporter(_seen(_now(), with_holders().observation))
    screen, whole, coloured = (
        reporter.answer(f"form=text&pid={_FAR}{more}")[2].decode()
        for more in ("", "&full=1", "&colour=1")
    )

    assert "Next: gilscope record" in screen
    assert "Who kept whom waiting" in whole
    assert "\x1b[" in coloured
    assert "\x1b[" not in screen


def test_windows_are_no_sum_of_all_holds() -> None:
    """
    In auto mode the holds that were seen stand for others; in full mode they are all.
    """
    seen = _seen(_now(), full_mode().observation)
    auto, full = (
        only_process(_reporter(seen, mode=mode).answer(f"form=json&pid={_FAR}")[2].decode())
        for mode in (Mode.AUTO, Mode.FULL)
    )

    assert ("auto", None) == (auto["mode"], auto["totals"]["holds"])
    assert auto["totals"]["acquires_estimated"] is True
    assert "full" == full["mode"]
    assert 0 < full["totals"]["holds"]


def test_windows_tell_how_often_threads_acquired_it() -> None:
    """
    About so many times, of which a convoy is a share.
    """
    seen = _seen(_now(), full_mode().observation, ago_s=2)
    threads = seen.totals.threads
    (serving,) = [one for one in threads if (one.role or "").startswith("serve")]
    assert serving.held is not None
    windows = replace(seen, totals=replace(seen.totals, observed_ns=_S // 5))
    _, _, body = _reporter(windows).answer("form=text")
    number = 10 * serving.held.count

    assert f" of ≈ {number} times that it acquired the GIL, ≈ " in body.decode()


def test_processes_that_ended_before_are_left_out() -> None:
    """
    As are all others where one was asked for.
    """
    now = _now()
    alive = _seen(now, convoy().observation)
    ended = [
        replace(_seen(now - ago_s * _S, observation(), _FAR + ago_s), ended=True)
        for ago_s in (5, 50)
    ]
    reporter = _reporter(alive, *ended)
    all_of_them, one, none = (
        reporter.answer(f"form=json&last=10{more}") for more in ("", f"&pid={_FAR}", "&pid=1")
    )
    pids = [
        {each["process"]["pid"] for each in json.loads(body)["processes"]}
        for _, _, body in (all_of_them, one)
    ]

    assert [{_FAR, _FAR + 5}, {_FAR}] == pids
    assert [1, 0] == [len(json.loads(body)["refused"]) for _, _, body in (all_of_them, one)]
    assert (HTTPStatus.NOT_FOUND, b"no such process is traced\n") == (none[0], none[2])


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("form=perl", b"form is one of html, text, json"),
        ("last=0", b"from 1 to 600"),
        ("last=601", b"from 1 to 600"),
        ("last=nan", b"from 1 to 600"),
        ("last=5m", b"from 1 to 600"),
        ("pid=one", b"number of a process"),
        ("pid=-1", b"number of a process"),
        ("form=%1b%5b2J", b"there is no report as '\\x1b[2J'"),
    ],
)
def test_what_makes_no_sense_is_said(query: str, words: bytes) -> None:
    """
    With what would.
    """
    status, _, body = _reporter().answer(query)

    assert HTTPStatus.BAD_REQUEST == status
    assert words in body


def test_one_report_is_made_at_a_time() -> None:
    """
    Whoever asks meanwhile is asked to come again; the agent has other things to do.
    """
    asked, go_on = threading.Event(), threading.Event()

    def observe() -> Sequence[GilObservation]:
        asked.set()
        assert go_on.wait(10)
        return [_seen(_now(), convoy().observation)]

    reporter = Reporter(observe, Past())
    first = threading.Thread(target=reporter.answer, args=("form=json",))
    first.start()
    assert asked.wait(10)
    status, headers, _ = reporter.answer("form=json")
    go_on.set()
    first.join()

    assert (HTTPStatus.SERVICE_UNAVAILABLE, "1") == (status, headers["Retry-After"])
    assert HTTPStatus.OK == reporter.answer("form=json")[0]


@pytest.mark.parametrize(("mode", "holds"), [(Mode.AUTO, 0), (Mode.FULL, 1)])
def test_the_worst_moment_of_these_minutes(mode: Mode, holds: int) -> None:
    """
    It is asked for since they began; holds that windows saw are no more than a part of them.
    """
    now = _now()
    asked = []

    def moment(pid: int, since_ns: int) -> Moment:
        asked.append((pid, since_ns))
        spans = (
            Span(1, 0, now - 40 * MS, now - 10 * MS, Kind.CONVOY, SERVING, CRUNCHING),
            Span(2, 0, now - 50 * MS, now - 10 * MS, None),
        )
        return Moment(now - 100 * MS, now, spans, chosen_among=2, has_holds=True)

    seen = _seen(now, convoy().observation)
    reporter = Reporter(lambda: [seen], Past(), mode=mode, moment=moment)
    _, _, page = reporter.answer("form=html")
    section = parse(page.decode()).one("section", id="moment")

    assert [(_FAR, seen.since_ns)] == asked
    assert ("inferred" not in section.text) == bool(holds)
