"""The part of ``serve`` that sends its figures to a receiver of OTLP."""

import argparse
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from urllib.parse import unquote, urlsplit

from gilscope.commands.numbers import seconds_between
from gilscope.exporter.samples import Series
from gilscope.text.printable import printable

__all__ = ["HEADERS", "add_otlp_options", "otlp_headers", "otlp_url", "pushed"]

HEADERS = "OTEL_EXPORTER_OTLP_HEADERS"
"""The variable that all exporters of OTLP know; secrets do not belong on a command line."""
_METRICS = "/v1/metrics"
_LEAST_S, _MOST_S = 0.1, 3600.0
_PATIENCE_S = 0.5


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


@contextmanager
def pushed(
    arguments: argparse.Namespace, began_ns: int, collect: Callable[[], Iterable[Series]]
) -> Iterator[None]:
    """Send what *collect* returns as *arguments* say until the block has ended.

    It has been counted since *began_ns*, of the epoch.
    """
    if arguments.otlp is None:
        yield
        return
    # It brings what speaks HTTP and TLS, which who is scraped alone is not to pay for.
    from gilscope.web.push import Push  # noqa: PLC0415 - see above

    headers = otlp_headers(os.environ.get(HEADERS, ""))
    push = Push(arguments.otlp, headers, collect, began_ns)
    is_over = threading.Event()
    thread = threading.Thread(
        target=push.run, args=(arguments.otlp_every, is_over), name="otlp", daemon=True
    )
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join(_PATIENCE_S)
