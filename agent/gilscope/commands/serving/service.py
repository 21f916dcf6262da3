"""What makes a command a service: its log, its end, and what its manager is told."""

import argparse
import logging
import os
import sys
import threading
import time

from gilscope.system.log_output import use_log_output
from gilscope.system.service_manager import ServiceManager
from gilscope.text.log_lines import JsonLines, LogLines

__all__ = ["Service", "begin_log"]

_log = logging.getLogger(__name__)


def begin_log(arguments: argparse.Namespace) -> None:
    """Log to stderr as *arguments* say, without ever waiting for who reads it."""
    use_log_output()
    lines = logging.StreamHandler()
    lines.setFormatter(JsonLines() if arguments.log_format == "json" else LogLines())
    logging.basicConfig(level=arguments.log_level.upper(), handlers=[lines])
    # What cannot be logged is counted, and not complained about.
    logging.raiseExceptions = False


class Service:
    """How far the service has come."""

    def __init__(self) -> None:
        self.stopped = threading.Event()
        """Set when it is to end."""
        self.began_ns = time.time_ns()
        """Since the epoch: nothing has been counted before."""
        self._manager = ServiceManager(os.environ)

    def has_loaded(self, bcc_version: str, *, is_ahead: bool) -> None:
        """Say which BPF programs these are: those that came with gilscope, or others."""
        if is_ahead:
            _log.info("BPF programs: as they came with gilscope, compiled by BCC %s", bcc_version)
        else:
            _log.debug("BPF programs: compiled here by BCC %s", bcc_version)

    def ready(self, url: str) -> None:
        """Say that it serves at *url* now."""
        print(f"Serving {url}metrics. Ctrl-C to end.", file=sys.stderr, flush=True)
        self._manager.ready()

    def alive(self) -> None:
        """Say that all its threads are alive. To be said about once a second."""
        self._manager.alive()

    def stop(self, _number: int) -> None:
        """End it, because a signal has come."""
        self._manager.stopping()
        self.stopped.set()
