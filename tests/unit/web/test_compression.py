"""Answers for those who can read them compressed."""

import gzip
from http import HTTPStatus

import pytest

from gilscope.web.compression import compressed, takes_gzip
from gilscope.web.listener import Answer

_ANSWER: Answer = (HTTPStatus.OK, {"Content-Type": "text/plain"}, b"lines that repeat\n" * 100)


@pytest.mark.parametrize(
    ("accept_encoding", "is_taken"),
    [
        ("gzip", True),
        ("deflate, GZIP;q=0.5", True),
        ("br, *;q=0.1", True),
        ("", False),
        ("identity", False),
        ("gzip;q=0", False),
        ("*, gzip;q=0", False),
        ("gzip;q=much", False),
    ],
)
def test_gzip_is_taken_if_the_client_says_so(accept_encoding: str, is_taken: bool) -> None:  # noqa: FBT001 - a parameter of the case
    """
    By name or among all forms, with a quality above 0.
    """
    assert is_taken == takes_gzip(accept_encoding)


def test_what_is_compressed_is_the_same() -> None:
    """
    Smaller, and said so; who asks in other words is not to be given it by a cache.
    """
    status, headers, body = compressed(_ANSWER, "gzip")

    assert _ANSWER[2] == gzip.decompress(body)
    assert len(body) * 10 < len(_ANSWER[2])
    assert HTTPStatus.OK == status
    assert {
        "Content-Type": "text/plain",
        "Content-Encoding": "gzip",
        "Vary": "Accept-Encoding",
    } == headers


def test_others_get_it_as_it_is() -> None:
    """
    With the same word for what is in between.
    """
    status, headers, body = compressed(_ANSWER, "identity")

    assert (HTTPStatus.OK, _ANSWER[2]) == (status, body)
    assert {"Content-Type": "text/plain", "Vary": "Accept-Encoding"} == headers
