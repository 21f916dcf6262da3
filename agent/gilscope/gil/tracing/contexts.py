"""Finds the processes that publish which requests their threads serve, for the probes to read.

A library that publishes them may be loaded at any time (`gilscope.process.threads.context`).
"""

import contextlib
import logging
import time

from gilscope.gil.probes.probe import GilProbe
from gilscope.gil.tracing.process import AttachedProcess
from gilscope.process import procfs
from gilscope.process.files.thread_variables import VariableSearch
from gilscope.process.memory_reader import ReadUnanswered
from gilscope.process.remote_read import TornRead
from gilscope.process.threads.context import CONTEXT_VARIABLE

__all__ = ["ContextFinder"]

_log = logging.getLogger(__name__)

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 1.0, 60.0
"""Between two searches in a process: a library may be loaded at any time."""


class ContextFinder:
    """Looks into each process now and then until it has been found to publish them."""

    def __init__(self, probe: GilProbe) -> None:
        """Let *probe* read what is found."""
        self._probe = probe
        self._search = VariableSearch(CONTEXT_VARIABLE)
        self._pauses: dict[tuple[int, int], tuple[float, float]] = {}
        """When to look again and how long to wait then, by pid and attachment."""

    def look(self, traced: AttachedProcess) -> None:
        """Look into *traced* if it is time for that."""
        if traced.blame is None or traced.ended or traced.context_place is not None:
            # Without stacks no thread state is known, which leads to the variable.
            return
        key, now_s = (traced.pid, traced.since_ns), time.monotonic()
        due_s, pause_s = self._pauses.get(key, (0.0, _FIRST_PAUSE_S))
        if now_s < due_s:
            return
        self._pauses[key] = (now_s + pause_s, min(2 * pause_s, _LONGEST_PAUSE_S))
        # One that has ended meanwhile is seen elsewhere, as is one that does not answer.
        with contextlib.suppress(OSError, ReadUnanswered, TornRead):
            located, is_complete = self._search.locate(traced.pid, procfs.read_maps(traced.pid))
            if not is_complete:
                self._pauses[key] = (now_s, pause_s)
            if located is None:
                return
            place = traced.reads(lambda: located.place(traced.memory))
            if place is not None and traced.runs_the_same():
                _log.debug("process %d publishes its traces", traced.pid)
                self._probe.read_contexts_of(
                    traced.pid,
                    {
                        "offset": place.offset,
                        "module": place.module,
                        "entry_size": place.entry_size,
                        "length_at": place.length_at,
                    },
                )
                traced.context_place = place

    def forget(self, pid: int) -> None:
        """Forget when *pid* was looked into."""
        for key in [key for key in self._pauses if key[0] == pid]:
            del self._pauses[key]
