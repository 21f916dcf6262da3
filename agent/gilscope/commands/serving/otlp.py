"""The part of ``serve`` that sends its figures to a receiver of OTLP."""

import argparse
import os
import platform
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from gilscope.commands.numbers import seconds_between
from gilscope.exporter.samples import Series
from gilscope.model.application import EVERYBODYS, Application
from gilscope.model.observation import Observation
from gilscope.text.printable import printable

if TYPE_CHECKING:
    from gilscope.web.push import Push

__all__ = [
    "HEADERS",
    "add_otlp_options",
    "check_otlp_options",
    "otlp_headers",
    "otlp_url",
    "profiles_url",
    "pushed",
]

HEADERS = "OTEL_EXPORTER_OTLP_HEADERS"
"""The variable that all exporters of OTLP know; secrets do not belong on a command line."""
_METRICS = "/v1/metrics"
_LEAST_S, _MOST_S = 0.1, 3600.0
_LEAST_PROFILES_S = 1.0
_PROFILES = "/v1development/profiles"
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
    parser.add_argument(
        "--otlp-profiles",
        type=seconds_between(_LEAST_PROFILES_S, _MOST_S),
        metavar="TIME",
        help="send profiles there too, an alpha of OTLP, each time of what was lost since the last",
    )


def check_otlp_options(arguments: argparse.Namespace) -> None:
    """Complain where `pushed` could not do what *arguments* say."""
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


@contextmanager
def pushed(
    arguments: argparse.Namespace,
    began_ns: int,
    collect: Callable[[], Iterable[Series]],
    observe: Callable[[], Iterable[Observation]] = tuple,
    application: Application = EVERYBODYS,
) -> Iterator[None]:
    """Send what *collect* returns, and profiles of what *observe* does, as *arguments* say.

    Until the block has ended. It has been counted since *began_ns*, of the epoch.
    """
    if arguments.otlp is None:
        yield
        return
    # It brings what speaks HTTP and TLS, which who is scraped alone is not to pay for.
    from gilscope.exporter.otlp import encode_otlp  # noqa: PLC0415 - see above
    from gilscope.web.push import Push  # noqa: PLC0415 - see above

    def metrics() -> bytes:
        return encode_otlp(collect(), began_ns, time.time_ns(), platform.node())

    headers = otlp_headers(os.environ.get(HEADERS, ""))
    with ExitStack() as stack:
        push = Push(arguments.otlp, headers, metrics)
        stack.enter_context(_pushing(push, arguments.otlp_every, "otlp"))
        if arguments.otlp_profiles is not None:
            from gilscope.web.profiles import Profiles  # noqa: PLC0415 - see above

            made = Profiles(observe, arguments.mode, application)
            push = Push(profiles_url(arguments.otlp), headers, made.request, made.taken)
            stack.enter_context(_pushing(push, arguments.otlp_profiles, "otlp profiles"))
        yield


@contextmanager
def _pushing(push: "Push", every_s: float, name: str) -> Iterator[None]:
    is_over = threading.Event()
    thread = threading.Thread(target=push.run, args=(every_s, is_over), name=name, daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join(_PATIENCE_S)
