"""Captures over HTTP."""

import json
from zlib import compress

import pytest

from gilscope.model.moment.capture import Capture
from gilscope.web.captures import capture_answer

_CAPTURES = [
    Capture(number, 0, 7, "app.py", (), compress(b"words %d" % number), compress(b'{"a": 1}'))
    for number in (12, 3)
]


def test_by_number_and_form() -> None:
    """
    Text unless JSON is asked for.
    """
    status, headers, body = capture_answer("number=3", _CAPTURES)
    _, json_headers, json_body = capture_answer("number=12&form=json", _CAPTURES)

    assert (200, b"words 3") == (status, body)
    assert ("text/plain; charset=utf-8", "nosniff") == (
        headers["Content-Type"],
        headers["X-Content-Type-Options"],
    )
    assert "application/json" == json_headers["Content-Type"]
    assert {"a": 1} == json.loads(json_body)


@pytest.mark.parametrize("query", ["", "number=4", "number=x", "number=03", "number=-1"])
def test_what_there_is_not(query: str) -> None:
    """
    Another number, or one that is no more kept.
    """
    assert 404 == capture_answer(query, _CAPTURES)[0]
    assert 404 == capture_answer("number=3", None)[0]


def test_another_form() -> None:
    """
    What is asked for is quoted so that it does no harm.
    """
    status, _, body = capture_answer("number=3&form=%1b%3Cb%3E", _CAPTURES)

    assert 400 == status
    assert b"'\\x1b<b>'" in body
