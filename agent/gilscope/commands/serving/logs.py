"""The part of ``serve`` that follows STM logs, beside processes or alone."""

import argparse
import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from gilscope.commands.serving.otlp import pushed
from gilscope.commands.serving.service import Service
from gilscope.discovery.agent_stats import own_state
from gilscope.exporter.source import Source
from gilscope.series.blocking import BlockingSeries
from gilscope.stm_log.follow.follower import Follower
from gilscope.system.named_thread import named_thread
from gilscope.web.health import Pulse
from gilscope.web.server import Server

__all__ = ["followed", "serve_logs"]

_TURN_S = 1.0
_PATIENCE_S = 0.5
_log = logging.getLogger(__name__)


@contextmanager
def followed(patterns: Sequence[str], beat: Callable[[], None]) -> Iterator[Follower]:
    """Follow what *patterns* mean until the block has ended; *beat* is called again and again."""
    follower = Follower(patterns, _log.warning)
    is_over = threading.Event()
    thread = named_thread("logs", _follow, follower, is_over, beat)
    thread.start()
    try:
        yield follower
    finally:
        is_over.set()
        follower.wake()
        thread.join(_PATIENCE_S)
        if not thread.is_alive():
            follower.close()


def _follow(follower: Follower, is_over: threading.Event, beat: Callable[[], None]) -> None:
    while not is_over.is_set():
        try:
            follower.advance(_TURN_S)
        except Exception:  # noqa: BLE001 - one log must not end the service for the others
            _log.exception("could not look after the STM logs this time")
            is_over.wait(_TURN_S)
        else:
            beat()


def serve_logs(arguments: argparse.Namespace, server: Server, service: Service) -> None:
    """Serve nothing but logs until *service* is to end."""
    pulse, began_ns = Pulse("reads the STM logs"), time.monotonic_ns()
    source = Source(lambda: own_state(began_ns))

    def beat() -> None:
        pulse.beat()
        service.alive()

    with followed(arguments.stm_log, beat) as follower:
        collector = server.show(
            source,
            pulse,
            BlockingSeries(arguments.pairs),
            follower.logs,
            has_pages=arguments.page,
        )
        http = named_thread("http", server.answer)
        http.start()
        with pushed(arguments, service.began_ns, collector.collect):
            service.ready(server.url)
            service.stopped.wait()
        server.stop()
        http.join(_PATIENCE_S)
