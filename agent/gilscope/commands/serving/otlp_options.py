"""The options of ``serve`` for receivers of OTLP."""

import argparse
import os
from urllib.parse import unquote, urlsplit

from gilscope.commands.numbers import seconds_between
from gilscope.text.printable import printable

__all__ = [
    "HEADERS",
    "add_otlp_options",
    "check_otlp_options",
    "otlp_headers",
    "otlp_url",
    "profiles_url",
]

HEADERS = "OTEL_EXPORTER_OTLP_HEADERS"
"""The variable that all exporters of OTLP know; secrets do not belong on a command line."""
_METRICS = "/v1/metrics"
_LEAST_S, _MOST_S = 0.1, 3600.0
_LEAST_PROFILES_S = 1.0
_PROFILES = "/v1development/profiles"


def add_otlp_options(parser: argparse.ArgumentParser) -> None:
    """Declare ``--otlp`` and ``--otlp-every``."""
    parser.add_argument(
        "--otlp",
        type=otlp_url,
        metavar="URL",
        help="send the metrics to this receiver of OTLP over HTTP as well, such as "
        f"http://127.0.0.1:4318; with headers of {HEADERS}",
    )
    parser.add_argument(
        "--otlp-every",
        type=seconds_between(_LEAST_S, _MOST_S),
        default="15s",
        metavar="TIME",
        help="time between two of these (default: 15s)",
    )
    parser.add_argument(
        "--otlp-profiles",
        type=seconds_between(_LEAST_PROFILES_S, _MOST_S),
        metavar="TIME",
        help="send profiles there too, an alpha of OTLP, each time of what was lost since the last",
    )


def check_otlp_options(arguments: argparse.Namespace) -> None:
    """Complain where `otlp.pushed` could not do what *arguments* say."""
    if arguments.otlp is None:
        if arguments.otlp_profiles is not None:
            arguments.complain("--otlp-profiles needs --otlp")
        return
    try:
        otlp_headers(os.environ.get(HEADERS, ""))
        if arguments.otlp_profiles is not None:
            profiles_url(arguments.otlp)
    except (argparse.ArgumentTypeError, ValueError) as error:
        arguments.complain(str(error))


def otlp_url(text: str) -> str:
    """Return where to send metrics to; raises ArgumentTypeError. Without a path it is OTLP's."""
    try:
        parts = urlsplit(text)
        is_whole = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_whole = False
    if not is_whole or not text.isascii() or not text.isprintable() or " " in text:
        raise argparse.ArgumentTypeError(f"{printable(text)!r} is not http://HOST:PORT")
    return text if parts.path.strip("/") else f"{text.rstrip('/')}{_METRICS}"


def otlp_headers(text: str) -> dict[str, str]:
    """Return the headers that ``name=value,name=value`` says, each percent-encoded.

    Raises ArgumentTypeError, without what may be a secret.
    """
    headers = {}
    for pair in filter(str.strip, text.split(",")):
        name, equals, value = (unquote(part).strip() for part in pair.partition("="))
        is_name = name.isascii() and name.replace("-", "").replace("_", "").isalnum()
        if not equals or not is_name or not value.isascii() or not value.isprintable():
            raise argparse.ArgumentTypeError(f"{HEADERS} is not NAME=VALUE,NAME=VALUE")
        headers[name] = value
    return headers


def profiles_url(url: str) -> str:
    """Return where to send profiles to, beside the metrics at *url*; raises ValueError."""
    if not url.endswith(_METRICS):
        raise ValueError(f"--otlp-profiles needs an --otlp that ends in {_METRICS}, or has no path")
    return f"{url.removesuffix(_METRICS)}{_PROFILES}"
