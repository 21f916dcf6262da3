"""``serve --otlp``: where to, and with which headers."""

import argparse

import pytest

from gilscope.commands.serving.otlp_options import otlp_headers, otlp_url, profiles_url


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("http://127.0.0.1:4318", "http://127.0.0.1:4318/v1/metrics"),
        ("https://collector.example/", "https://collector.example/v1/metrics"),
        ("http://[::1]:9090/api/v1/otlp/v1/metrics", "http://[::1]:9090/api/v1/otlp/v1/metrics"),
    ],
)
def test_without_a_path_it_is_that_of_metrics(text: str, url: str) -> None:
    """
    A path that is given is the whole one.
    """
    assert url == otlp_url(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "127.0.0.1:4318",
        "ftp://a/",
        "http://",
        "http://a:x/",
        "http://a b/",
        "http://ä/",
        "file:/a",
    ],
)
def test_what_is_no_url_is_refused(text: str) -> None:
    """
    Before anything is traced.
    """
    with pytest.raises(argparse.ArgumentTypeError, match="is not http://HOST:PORT"):
        otlp_url(text)


def test_profiles_go_beside_the_metrics() -> None:
    """
    Where that is known.
    """
    assert "http://a:4318/v1development/profiles" == profiles_url(otlp_url("http://a:4318"))
    assert "http://a/otlp/v1development/profiles" == profiles_url("http://a/otlp/v1/metrics")
    with pytest.raises(ValueError, match="needs an --otlp that ends in /v1/metrics"):
        profiles_url(otlp_url("http://a/metrics"))


def test_headers_are_as_all_exporters_have_them() -> None:
    """
    Pairs with commas between, percent-encoded.
    """
    assert {} == otlp_headers("")
    assert {"Authorization": "Basic YTpi=", "X-Scope-OrgID": "a,b"} == otlp_headers(
        "Authorization=Basic%20YTpi=, X-Scope-OrgID=a%2Cb,"
    )


@pytest.mark.parametrize("text", ["secret", "=secret", "a b=secret", "a=secret%0d%0ab: c"])
def test_what_is_no_header_is_not_shown(text: str) -> None:
    """
    It may be a secret.
    """
    with pytest.raises(argparse.ArgumentTypeError) as raised:
        otlp_headers(text)

    assert "OTEL_EXPORTER_OTLP_HEADERS is not NAME=VALUE,NAME=VALUE" == str(raised.value)
