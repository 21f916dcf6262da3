"""Finds the processes that publish which requests their threads serve, for the probes to read.

A library that publishes them may be loaded at any time (`gilscope.process.published`), and a
process may find new names for what it says of requests.
"""

import contextlib
import hashlib
import logging
import math
import os
import time

from gilscope.gil.probes.probe import GilProbe
from gilscope.gil.tracing.process import AttachedProcess
from gilscope.process import procfs
from gilscope.process.files.thread_variables import VariableSearch
from gilscope.process.memory_reader import ReadUnanswered
from gilscope.process.published.process_context import mapped_at, read_process_context
from gilscope.process.published.thread_context import CONTEXT_VARIABLE
from gilscope.process.remote_read import TornRead
from gilscope.values import dataclass

__all__ = ["ContextFinder"]

_log = logging.getLogger(__name__)

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 1.0, 60.0
"""Between two searches of a process: a library may be loaded at any time."""


@dataclass(slots=True)
class _Search:
    """When a process is searched next."""

    due_s: float = 0.0
    pause_s: float = _FIRST_PAUSE_S
    barren: bytes = b""
    """A digest of its mappings, in which all was looked for and nothing found."""


class ContextFinder:
    """Looks into each process now and then for what it publishes."""

    def __init__(self, probe: GilProbe) -> None:
        """Let *probe* read what is found."""
        self._probe = probe
        self._search = VariableSearch(CONTEXT_VARIABLE)
        self._searches: dict[tuple[int, int], _Search] = {}
        """By pid and attachment."""

    def due_s(self, traced: AttachedProcess) -> float:
        """Return when `look` has something to do for *traced*, by the monotonic clock."""
        if traced.blame is None or traced.ended:
            return math.inf
        search = self._searches.get((traced.pid, traced.since_ns))
        return 0.0 if search is None else search.due_s

    def look(self, traced: AttachedProcess) -> None:
        """Look into *traced* if it is time for that."""
        now_s = time.monotonic()
        # Without stacks no thread state is known, which leads to the variable: never then.
        if now_s < self.due_s(traced):
            return
        search = self._searches.setdefault((traced.pid, traced.since_ns), _Search())
        pause_s = search.pause_s
        search.due_s, search.pause_s = now_s + pause_s, min(2 * pause_s, _LONGEST_PAUSE_S)
        before = traced.requests.place_for_probes()
        # One that has ended meanwhile is seen elsewhere, as is one that does not answer.
        with contextlib.suppress(OSError, ReadUnanswered, TornRead):
            maps = procfs.read_maps_text(traced.pid)
            digest = hashlib.blake2b(maps, digest_size=16).digest()
            if digest == search.barren:
                return
            has_place, is_complete = traced.requests.place is not None, True
            if not has_place:
                has_place, is_complete = self._find_place(traced, maps)
            if not is_complete:
                search.due_s, search.pause_s = now_s, pause_s
            if any(mapped_at(maps)):
                found = traced.reads(lambda: read_process_context(traced.memory, maps))
                # One that is being written is what it was before.
                traced.requests.context = found or traced.requests.context
            elif is_complete and not has_place:
                search.barren = digest
        place = traced.requests.place_for_probes()
        if place is not None and place != before:
            self._probe.read_contexts_of(traced.pid, place)

    def forget(self, pid: int) -> None:
        """Forget when *pid* was looked into."""
        for key in [key for key in self._searches if key[0] == pid]:
            del self._searches[key]

    def _find_place(self, traced: AttachedProcess, maps: bytes) -> tuple[bool, bool]:
        """Look for the variable of its threads; return whether there may be one in its files.

        And whether all of these were looked into.
        Raises TornRead, ReadUnanswered and OSError as reading a process does.
        """
        mappings = procfs.parse_maps(os.fsdecode(maps))
        located, is_complete = self._search.locate(traced.pid, mappings)
        if located is not None:
            place = traced.reads(lambda: located.place(traced.memory))
            if place is not None and traced.runs_the_same():
                _log.debug("process %d publishes its traces", traced.pid)
                traced.requests.place = place
        return located is not None, is_complete
