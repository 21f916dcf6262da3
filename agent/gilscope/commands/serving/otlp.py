"""The part of ``serve`` that sends its figures to a receiver of OTLP."""

import argparse
import os
import platform
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from gilscope.commands.serving.otlp_options import HEADERS, otlp_headers, profiles_url
from gilscope.exporter.samples import Series
from gilscope.model.application import EVERYBODYS, Application
from gilscope.model.observation import Observation
from gilscope.system.named_thread import named_thread

if TYPE_CHECKING:
    from gilscope.web.otlp.push import Push

__all__ = ["pushed"]

_PATIENCE_S = 0.5


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
    from gilscope.web.otlp.push import Push  # noqa: PLC0415 - see above

    def metrics() -> bytes:
        return encode_otlp(collect(), began_ns, time.time_ns(), platform.node())

    headers = otlp_headers(os.environ.get(HEADERS, ""))
    with ExitStack() as stack:
        push = Push(arguments.otlp, headers, metrics)
        stack.enter_context(_pushing(push, arguments.otlp_every, "otlp"))
        if arguments.otlp_profiles is not None:
            from gilscope.web.otlp.profiles import Profiles  # noqa: PLC0415 - see above

            made = Profiles(observe, arguments.mode, application)
            push = Push(profiles_url(arguments.otlp), headers, made.request, made.taken)
            stack.enter_context(_pushing(push, arguments.otlp_profiles, "otlp profiles"))
        yield


@contextmanager
def _pushing(push: "Push", every_s: float, name: str) -> Iterator[None]:
    is_over = threading.Event()
    thread = named_thread(name, push.run, every_s, is_over)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join(_PATIENCE_S)
