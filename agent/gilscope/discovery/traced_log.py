"""Logs what is traced from now on, and no more of it than can be read."""

import logging
import time

from gilscope.model.observation import AnyProcess
from gilscope.text.printable import printable

__all__ = ["TracedLog"]

_log = logging.getLogger(__name__)

_MOST = 30
_SPAN_S = 60.0
"""A host on which processes come and go all the time gets so many lines in such a span."""


class TracedLog:
    """The lines about processes that are traced from now on."""

    def __init__(self) -> None:
        self._span_ends_s = 0.0
        self._said = 0
        self._unsaid = 0

    def add(self, process: AnyProcess) -> None:
        """Log that *process* is traced, or count it if there were too many of late."""
        now_s = time.monotonic()
        if now_s >= self._span_ends_s:
            self.tell_rest()
            self._span_ends_s, self._said = now_s + _SPAN_S, 0
        if self._said < _MOST:
            self._said += 1
            _log.info("traced: %s, pid %d", printable(process.name), process.pid)
        else:
            self._unsaid += 1

    def tell_rest(self) -> None:
        """Log how many there were that are not named, if any."""
        if self._unsaid:
            _log.info("traced: %d more since the last one that is named here", self._unsaid)
        self._unsaid = 0
