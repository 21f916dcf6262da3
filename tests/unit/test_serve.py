"""Addresses of the HTTP side."""

import pytest

from gilscope.serve import parse_address


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:9845", ("127.0.0.1", 9845)),
        (":0", ("", 0)),
        ("[::1]:80", ("::1", 80)),
        ("localhost:65535", ("localhost", 65535)),
    ],
)
def test_address_is_host_and_port(text: str, address: tuple[str, int]) -> None:
    """
    The forms that other exporters take.
    """
    assert address == parse_address(text)


@pytest.mark.parametrize("text", ["", "9845", "host:", "host:port", "h:65536", "::1:80", "h:-1"])
def test_anything_else_is_refused(text: str) -> None:
    """
    An error, not a guess.
    """
    with pytest.raises(ValueError, match=r"HOST:PORT|brackets"):
        parse_address(text)
