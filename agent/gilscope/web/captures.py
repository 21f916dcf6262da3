"""Answers with one of the last captures: what all threads did when a wait passed its limit."""

import http
from collections.abc import Callable, Sequence
from urllib.parse import parse_qs
from zlib import decompress

from gilscope.model.moment.capture import Capture
from gilscope.web.listener import Answer

__all__ = ["Captured", "capture_answer"]

Captured = Callable[[], Sequence[Capture] | None]
"""Returns the last captures, the latest first; None where none are taken."""

_HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
_TEXT = {"Content-Type": "text/plain; charset=utf-8", **_HEADERS}
_JSON = {"Content-Type": "application/json", **_HEADERS}
_MISSING = b"there is no such capture any more; the page lists the last ones\n"


def capture_answer(query: str, captures: Sequence[Capture] | None) -> Answer:
    """Return the capture that *query* wants, by its ``number``, in the ``form`` text or json."""
    given = {name: values[-1] for name, values in parse_qs(query).items()}
    form = given.get("form", "text")
    if form not in {"text", "json"}:
        words = f"there is no capture as {form!a}; form is text or json\n"
        return http.HTTPStatus.BAD_REQUEST, _TEXT, words.encode()
    number = given.get("number", "")
    found = next((each for each in captures or () if str(each.number) == number), None)
    if found is None:
        return http.HTTPStatus.NOT_FOUND, _TEXT, _MISSING
    if form == "json":
        return http.HTTPStatus.OK, _JSON, decompress(found.json)
    return http.HTTPStatus.OK, _TEXT, decompress(found.text)
