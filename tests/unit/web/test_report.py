"""A report of the last minutes: what can be asked for, and in which forms it comes."""

import json
import threading
from collections.abc import Sequence
from http import HTTPStatus

import pytest

from gilscope.model.gil import GilObservation
from gilscope.model.observation import Observation
from gilscope.series.past import Pasts
from gilscope.web.last_minutes import LastMinutes
from gilscope.web.report import FORMS, Reporter
from support.commands.json_reports import assert_fits_schema
from support.recordings.gil import MS, with_holders
from support.reports import pprof
from support.web.seen import FAR, seen


def _reporter(*every: GilObservation) -> Reporter:
    return Reporter(LastMinutes(lambda: [Observation(each) for each in every], Pasts()))


def test_a_process_that_is_not_traced() -> None:
    """
    There is nothing to report on.
    """
    status, _, body = _reporter(seen()).answer("pid=1")

    assert (HTTPStatus.NOT_FOUND, b"no such process is traced\n") == (status, body)


def test_all_forms_are_made() -> None:
    """
    Each with its type, and kept by nobody in between.
    """
    reporter = _reporter(seen(with_holders().observation))
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
    reporter = _reporter(seen(with_holders().observation))
    screen, whole, coloured = (
        reporter.answer(f"form=text&pid={FAR}{more}")[2].decode()
        for more in ("", "&full=1", "&colour=1")
    )

    assert "Next: gilscope record" in screen
    assert "Who kept whom waiting" in whole
    assert "\x1b[" in coloured
    assert "\x1b[" not in screen


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

    def observe() -> Sequence[Observation]:
        asked.set()
        assert go_on.wait(10)
        return [Observation(seen())]

    reporter = Reporter(LastMinutes(observe, Pasts()))
    first = threading.Thread(target=reporter.answer, args=("form=json",))
    first.start()
    assert asked.wait(10)
    status, headers, _ = reporter.answer("form=json")
    go_on.set()
    first.join()

    assert (HTTPStatus.SERVICE_UNAVAILABLE, "1") == (status, headers["Retry-After"])
    assert HTTPStatus.OK == reporter.answer("form=json")[0]
