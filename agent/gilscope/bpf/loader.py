"""Has BPF programs compiled and loaded by a child process, and keeps their descriptors.

What was compiled once is remembered (see `ProgramCache`): the next time it is loaded from here, by
the system calls alone.
"""

import json
import logging
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from gilscope.assets.files import asset
from gilscope.bpf.compile.child import Child
from gilscope.bpf.compile.failures import failure
from gilscope.bpf.compile.object import Compiled
from gilscope.bpf.compile.object_cache import ProgramCache, program_key
from gilscope.bpf.compile.source import flatten
from gilscope.bpf.map import RecordLayout, Table
from gilscope.bpf.object_loader import compiled_from_answer, load_compiled
from gilscope.bpf.request import Request
from gilscope.bpf.ringbuf import Ring

__all__ = ["Loaded", "Loading"]

# The agent's own Python first; then the distribution's, whose package BCC is.
_PYTHONS = (sys.executable, "/usr/bin/python3")

_CACHE = ProgramCache()

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Loaded:
    """Programs and maps in the kernel. Closing it removes those that nothing else holds."""

    programs: Mapping[str, int]
    tables: Mapping[str, Table]
    rings: Mapping[str, Ring]
    bcc_version: str

    def close(self) -> None:
        """Give up all descriptors."""
        for fd in self.programs.values():
            os.close(fd)
        for table in self.tables.values():
            table.close()
        for ring in self.rings.values():
            ring.close()


class Loading:
    """A compilation that runs in a child process while the caller does something else.

    There is none where the programs are remembered.
    """

    def __init__(self, request: Request, cache: ProgramCache | None = _CACHE) -> None:
        """Begin to compile and load *request*; None as *cache*: whatever is remembered."""
        probes = asset("probes")
        message = {
            "text": flatten(request.probe, lambda name: (probes / name).read_text("utf-8")),
            "cflags": [f"-D{name}={value}" for name, value in request.defines().items()],
            "programs": dict(request.programs),
            "tables": list(request.tables),
            "rings": list(request.rings),
        }
        self.request = request
        self._message = json.dumps(message)
        self._key = program_key(message)
        self._pythons = [python for python in dict.fromkeys(_PYTHONS) if Path(python).exists()]
        self._cache = cache
        self._remembered = None if cache is None else cache.load(self._key)
        self._child = None if self._remembered is not None else self._next_child()

    def compile_anew(self) -> Self:
        """Compile also what is remembered, and do not remember it; returns itself."""
        self._cache = self._remembered = None
        self._child = self._child or self._next_child()
        return self

    def finish(self) -> Loaded:
        """Wait for the programs and return them; raises KernelOrBccMissing or NotPermitted."""
        if self._remembered is not None:
            try:
                return self._load_remembered(self._remembered)
            except (OSError, ValueError, KeyError) as error:
                # The compiler will say what is wrong, or the programs are out of date.
                _log.debug("remembered programs were not loaded: %s", error)
        child = self._child or self._next_child()
        answer, descriptors, complaints = child.answer()
        while answer.get("error") in ("no-bcc", "not-bcc") and self._pythons:
            answer, descriptors, complaints = self._next_child().answer()
        if "error" in answer:
            raise failure(answer, complaints)
        count = len(answer["programs"]) + len(answer["tables"]) + len(self.request.rings)
        self._remember(answer, descriptors[count:])
        remaining = iter(descriptors[:count])
        programs = dict(zip(answer["programs"], remaining, strict=False))
        names = [*(table["name"] for table in answer["tables"]), *self.request.rings]
        maps = dict(zip(names, remaining, strict=True))
        return _loaded(programs, maps, answer["tables"], self.request.rings, answer["bcc"])

    def cancel(self) -> None:
        """Give up; to be called instead of `finish`."""
        if self._child is not None:
            self._child.cancel()

    def _next_child(self) -> Child:
        return Child(self._pythons.pop(0), self._message)

    def _load_remembered(self, compiled: Compiled) -> Loaded:
        programs, maps = load_compiled(compiled, self.request.programs)
        try:
            return _loaded(
                programs, maps, compiled.tables, self.request.rings, compiled.bcc_version
            )
        except BaseException:
            for fd in (*programs.values(), *maps.values()):
                os.close(fd)
            raise

    def _remember(self, answer: Mapping[str, Any], descriptors: Sequence[int]) -> None:
        try:
            if self._cache is not None and answer["compiled"] is not None:
                self._cache.store(self._key, compiled_from_answer(answer, descriptors))
        except (OSError, ValueError) as error:
            _log.debug("the programs cannot be remembered: %s", error)
        finally:
            for fd in descriptors:
                os.close(fd)


def _loaded(
    programs: Mapping[str, int],
    maps: Mapping[str, int],
    descriptions: Iterable[Mapping[str, Any]],
    layouts: Mapping[str, RecordLayout],
    bcc_version: str,
) -> Loaded:
    tables = {
        description["name"]: Table(
            description["name"],
            maps[description["name"]],
            RecordLayout.from_json(description["key"]),
            RecordLayout.from_json(description["value"]),
        )
        for description in descriptions
    }
    rings = {name: Ring(name, maps[name], layout) for name, layout in layouts.items()}
    return Loaded(programs, tables, rings, bcc_version)
