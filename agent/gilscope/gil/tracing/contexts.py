"""Finds the processes that publish which requests their threads serve, for the probes to read.

A library that publishes them may be loaded at any time (`gilscope.process.published`), and a
process may find new names for what it says of requests.
"""

import contextlib
import logging
import os
import time

from gilscope.gil.probes.probe import GilProbe
from gilscope.gil.tracing.process import AttachedProcess
from gilscope.process import procfs
from gilscope.process.files.thread_variables import VariableSearch
from gilscope.process.memory_reader import ReadUnanswered
from gilscope.process.published.process_context import read_process_context
from gilscope.process.published.thread_context import CONTEXT_VARIABLE
from gilscope.process.remote_read import TornRead

__all__ = ["ContextFinder"]

_log = logging.getLogger(__name__)

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 1.0, 60.0
"""Between two searches of a process: a library may be loaded at any time."""


class ContextFinder:
    """Looks into each process now and then for what it publishes."""

    def __init__(self, probe: GilProbe) -> None:
        """Let *probe* read what is found."""
        self._probe = probe
        self._search = VariableSearch(CONTEXT_VARIABLE)
        self._pauses: dict[tuple[int, int], tuple[float, float]] = {}
        """When to look again and how long to wait then, by pid and attachment."""

    def look(self, traced: AttachedProcess) -> None:
        """Look into *traced* if it is time for that."""
        if traced.blame is None or traced.ended:
            # Without stacks no thread state is known, which leads to the variable.
            return
        key, now_s = (traced.pid, traced.since_ns), time.monotonic()
        due_s, pause_s = self._pauses.get(key, (0.0, _FIRST_PAUSE_S))
        if now_s < due_s:
            return
        self._pauses[key] = (now_s + pause_s, min(2 * pause_s, _LONGEST_PAUSE_S))
        before = traced.requests.place_for_probes()
        # One that has ended meanwhile is seen elsewhere, as is one that does not answer.
        with contextlib.suppress(OSError, ReadUnanswered, TornRead):
            maps = procfs.read_maps_text(traced.pid)
            if traced.requests.place is None and not self._find_place(traced, maps):
                self._pauses[key] = (now_s, pause_s)
            found = traced.reads(lambda: read_process_context(traced.memory, maps))
            # One that is being written is what it was before.
            traced.requests.context = found or traced.requests.context
        place = traced.requests.place_for_probes()
        if place is not None and place != before:
            self._probe.read_contexts_of(traced.pid, place)

    def forget(self, pid: int) -> None:
        """Forget when *pid* was looked into."""
        for key in [key for key in self._pauses if key[0] == pid]:
            del self._pauses[key]

    def _find_place(self, traced: AttachedProcess, maps: bytes) -> bool:
        """Look for the variable of its threads; return whether all of its files were looked into.

        Raises TornRead, ReadUnanswered and OSError as reading a process does.
        """
        mappings = procfs.parse_maps(os.fsdecode(maps))
        located, is_complete = self._search.locate(traced.pid, mappings)
        if located is not None:
            place = traced.reads(lambda: located.place(traced.memory))
            if place is not None and traced.runs_the_same():
                _log.debug("process %d publishes its traces", traced.pid)
                traced.requests.place = place
        return is_complete
