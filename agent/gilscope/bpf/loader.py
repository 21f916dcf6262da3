"""Loads BPF programs, and keeps their descriptors.

A release brings them compiled (see `compile.ahead`). Others are compiled and loaded by a child
process, and remembered (see `ProgramCache`). What is compiled already is loaded from here, by the
system calls alone.
"""

import errno
import json
import logging
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from gilscope.assets.files import asset
from gilscope.bpf.compile.ahead import AHEAD, ahead_message, find_ahead, for_request, write_ahead
from gilscope.bpf.compile.failures import failure
from gilscope.bpf.compile.object import Compiled
from gilscope.bpf.compile.object_cache import ProgramCache, program_key
from gilscope.bpf.compile.source import flatten
from gilscope.bpf.map import RecordLayout, Table
from gilscope.bpf.object_loader import compiled_from_answer, load_compiled
from gilscope.bpf.programs import Programs
from gilscope.bpf.request import Request
from gilscope.bpf.ringbuf import Ring
from gilscope.values import dataclass

if TYPE_CHECKING:
    from gilscope.bpf.compile.child import Child

__all__ = ["ENVIRONMENT", "Loaded", "Loading", "compile_ahead", "has_ahead"]

ENVIRONMENT = "GILSCOPE_PROGRAMS"
"""Where this says ``bcc``, programs that were compiled ahead are passed over."""

# The agent's own Python first; then the distribution's, whose package BCC is.
_PYTHONS = (sys.executable, "/usr/bin/python3")

_CACHE = ProgramCache()
_TURN_S = 0.0002

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Loaded:
    """Programs and maps in the kernel. Closing it removes those that nothing else holds."""

    programs: Programs
    tables: Mapping[str, Table]
    rings: Mapping[str, Ring]
    bcc_version: str
    is_ahead: bool = False
    """Whether they were compiled when gilscope was built."""

    def close(self) -> None:
        """Give up all descriptors."""
        self.programs.close()
        for table in self.tables.values():
            table.close()
        for ring in self.rings.values():
            ring.close()


class Loading:
    """A compilation that runs in a child process while the caller does something else.

    There is none where the programs came with gilscope or are remembered.
    """

    def __init__(
        self,
        request: Request,
        cache: ProgramCache | None = _CACHE,
        ahead: Path | None = AHEAD,
    ) -> None:
        """Begin to compile and load *request*, unless *cache* or the folder *ahead* has it."""
        text = _text(request)
        message = {
            "text": text,
            "cflags": [f"-D{name}={value}" for name, value in request.defines().items()],
            "programs": dict(request.programs),
            "tables": list(request.tables),
            "rings": list(request.rings),
        }
        self.request = request
        self._message = json.dumps(message)
        self._key = program_key(message)
        self._pythons = _existing_pythons()
        self._cache = cache
        self._ahead = None if ahead is None else _ahead(request, text, ahead)
        self._remembered = self._look_up() if self._ahead is None else None
        is_compiled = self._ahead is not None or self._remembered is not None
        self._child = None if is_compiled else self._next_child()
        self._meanwhile: Future[Loaded] | None = None
        """The first of what is compiled, if it is being loaded already."""

    @property
    def is_ahead(self) -> bool:
        """Whether there are programs that came with gilscope, which are tried first."""
        return self._ahead is not None

    def load_meanwhile(self) -> Self:
        """Begin to load what is compiled already, in a thread; returns itself.

        To be called once, and with no `compile_anew` after it.
        """
        for compiled, is_ahead in self._compiled():
            pool = ThreadPoolExecutor(1, "loading")
            self._meanwhile = pool.submit(self._load_promptly, compiled, is_ahead=is_ahead)
            pool.shutdown(wait=False)
            break
        return self

    def compile_anew(self) -> Self:
        """Compile also what is remembered, and do not remember it; returns itself."""
        self._cache = self._ahead = self._remembered = None
        self._child = self._child or self._next_child()
        return self

    def finish(self) -> Loaded:
        """Wait for the programs and return them; raises KernelOrBccMissing or NotPermitted."""
        refusal = ""
        for compiled, is_ahead in self._compiled():
            meanwhile, self._meanwhile = self._meanwhile, None
            try:
                if meanwhile is not None:
                    return meanwhile.result()
                return self._load_compiled(compiled, is_ahead=is_ahead)
            except (OSError, ValueError, KeyError) as error:
                # The compiler will say what is wrong, or the programs are out of date.
                _log.debug("compiled programs were not loaded: %s", error)
                if is_ahead:
                    refusal = str(error)
                if is_ahead and isinstance(error, OSError) and error.errno == errno.EPERM:
                    refused = {"error": "compile", "message": refusal, "errno": error.errno}
                    raise failure(refused, "") from None
        child, self._child = self._child or self._next_child(), None
        answer, descriptors, complaints = child.answer()
        while answer.get("error") in ("no-bcc", "not-bcc") and self._pythons:
            answer, descriptors, complaints = self._next_child().answer()
        if "error" in answer:
            raise failure(answer, complaints, refusal)
        count = len(answer["programs"]) + len(answer["tables"]) + len(self.request.rings)
        self._remember(answer, descriptors[count:])
        remaining = iter(descriptors[:count])
        programs = Programs(dict(zip(answer["programs"], remaining, strict=False)))
        names = [*(table["name"] for table in answer["tables"]), *self.request.rings]
        maps = dict(zip(names, remaining, strict=True))
        return _loaded(programs, maps, answer["tables"], self.request.rings, answer["bcc"])

    def cancel(self) -> None:
        """Give up what has begun; after `finish` there is nothing of that."""
        child, self._child = self._child, None
        if child is not None:
            child.cancel()
        meanwhile, self._meanwhile = self._meanwhile, None
        if meanwhile is not None and meanwhile.exception() is None:
            meanwhile.result().close()

    def _next_child(self) -> "Child":
        return _child(self._pythons.pop(0), self._message)

    def _look_up(self) -> Compiled | None:
        return None if self._cache is None else self._cache.load(self._key)

    def _compiled(self) -> Iterator[tuple[Compiled, bool]]:
        """Yield programs that are compiled, and whether ahead, until some are taken."""
        if self._ahead is not None:
            yield self._ahead, True
        if remembered := self._remembered or self._look_up():
            yield remembered, False

    def _load_promptly(self, compiled: Compiled, *, is_ahead: bool) -> Loaded:
        # Who makes system calls would wait after each of some hundred for who imports meanwhile, by
        # default for 5 ms.
        usual_s = sys.getswitchinterval()
        sys.setswitchinterval(_TURN_S)
        try:
            return self._load_compiled(compiled, is_ahead=is_ahead, is_alone=False)
        finally:
            sys.setswitchinterval(usual_s)

    def _load_compiled(
        self, compiled: Compiled, *, is_ahead: bool, is_alone: bool = True
    ) -> Loaded:
        if is_ahead:
            compiled = for_request(compiled, self.request)
        programs, maps = load_compiled(
            compiled, self.request.programs, self.request.later, is_alone=is_alone
        )
        try:
            loaded = _loaded(
                programs, maps, compiled.tables, self.request.rings, compiled.bcc_version
            )
        except BaseException:
            programs.close()
            for fd in maps.values():
                os.close(fd)
            raise
        return replace(loaded, is_ahead=is_ahead)

    def _remember(self, answer: Mapping[str, Any], descriptors: Sequence[int]) -> None:
        try:
            if self._cache is not None and answer["compiled"] is not None:
                self._cache.store(
                    self._key, compiled_from_answer(answer, descriptors, self.request.inner_of)
                )
        except (OSError, ValueError) as error:
            _log.debug("the programs cannot be remembered: %s", error)
        finally:
            for fd in descriptors:
                os.close(fd)


def compile_ahead(request: Request, folder: Path = AHEAD) -> Path:
    """Have the programs of *request* compiled for all machines, and return their file in *folder*.

    Only what *request* asks for will be found there. Takes root, for BCC makes the maps. Raises
    KernelOrBccMissing, NotPermitted, OSError, and ValueError where they cannot be kept.
    """
    text = _text(request)
    message = json.dumps(ahead_message(request, text))
    answer: dict[str, Any] = {"error": "no-bcc", "message": "there is no Python"}
    descriptors: list[int] = []
    complaints = ""
    for python in _existing_pythons():
        answer, descriptors, complaints = _child(python, message).answer()
        if answer.get("error") not in ("no-bcc", "not-bcc"):
            break
    try:
        if "error" in answer:
            raise failure(answer, complaints)
        if answer["compiled"] is None:
            raise ValueError("BCC does not say what it has made")
        count = len(request.tables) + len(request.rings)
        compiled = compiled_from_answer(answer, descriptors[count:], request.inner_of)
    finally:
        for fd in descriptors:
            os.close(fd)
    return write_ahead(compiled, request, text, folder)


def has_ahead(request: Request, folder: Path = AHEAD) -> bool:
    """Return whether programs for *request* came with gilscope, and are to be used."""
    return _ahead(request, _text(request), folder) is not None


def _ahead(request: Request, text: str, folder: Path) -> Compiled | None:
    wants_bcc = os.environ.get(ENVIRONMENT) == "bcc"
    return None if wants_bcc else find_ahead(request, text, folder)


def _child(python: str, message: str) -> "Child":
    # It brings what starts programs, which nobody needs whose programs are compiled already.
    from gilscope.bpf.compile.child import Child  # noqa: PLC0415 - see above

    return Child(python, message)


def _existing_pythons() -> list[str]:
    return [python for python in dict.fromkeys(_PYTHONS) if Path(python).exists()]


def _text(request: Request) -> str:
    probes = asset("probes")
    return flatten(request.probe, lambda name: (probes / name).read_text("utf-8"))


def _loaded(
    programs: Programs,
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
