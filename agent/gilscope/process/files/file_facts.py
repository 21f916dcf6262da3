"""Remembers what was found out about a file, for as long as it stays as it was."""

import os
import threading
import time
from collections.abc import Callable, Hashable
from typing import Any, Final, TypeVar

__all__ = ["FileFacts"]

_Fact = TypeVar("_Fact")

_SETTLED_NS: Final = 2_000_000_000
"""A file that was changed more recently may change again within the same tick of its clock."""

_Stamp = tuple[int, int, int]


class FileFacts:
    """Answers about one open file, each searched for once. Any thread may ask.

    A host has hundreds of processes with the same interpreter: to read that anew for each would be
    most of the work of tracing it.
    """

    def __init__(self, descriptor: int) -> None:
        """Remember nothing yet of the file *descriptor*, which stays the caller's."""
        self._descriptor = descriptor
        self._lock = threading.Lock()
        self._stamp: _Stamp | None = None
        self._known: dict[Hashable, Any] = {}

    def known(self, question: Hashable, answer: Callable[[], _Fact]) -> _Fact:
        """Return what *answer* returned when *question* was asked first of the file as it is.

        Raises what *answer* raises, and asks it again the next time; or OSError.
        """
        stamp = self._settled_stamp()
        if stamp is not None:
            with self._lock:
                if stamp != self._stamp:
                    self._stamp, self._known = stamp, {}
                if question in self._known:
                    found: _Fact = self._known[question]
                    return found
        found = answer()
        # What was read while the file was being changed is of neither the old one nor the new.
        if stamp is not None and self._settled_stamp() == stamp:
            with self._lock:
                if stamp == self._stamp:
                    self._known[question] = found
        return found

    def _settled_stamp(self) -> _Stamp | None:
        """Return what changes with the file's content; None: it may change without that."""
        status = os.fstat(self._descriptor)
        if time.time_ns() - status.st_ctime_ns < _SETTLED_NS:
            return None
        return status.st_size, status.st_mtime_ns, status.st_ctime_ns
