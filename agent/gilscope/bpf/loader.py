"""Has BPF programs compiled and loaded by a child process, and keeps their descriptors.

What was compiled once is remembered (see `ProgramCache`): the next time it is loaded from here, by
the system calls alone.
"""

import contextlib
import errno
import json
import logging
import os
import socket
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from gilscope.assets.files import asset
from gilscope.bpf import syscalls
from gilscope.bpf.compile.headers import find_headers
from gilscope.bpf.compile.object import Compiled
from gilscope.bpf.compile.object_cache import COMPILER, ProgramCache, program_key
from gilscope.bpf.compile.source import flatten
from gilscope.bpf.map import RecordLayout, Table
from gilscope.bpf.object_loader import compiled_from_answer, load_compiled
from gilscope.bpf.request import Request
from gilscope.bpf.ringbuf import Ring
from gilscope.errors import KernelOrBccMissing, LimitReached, NotPermitted
from gilscope.system.shortage import low_limits

__all__ = ["Loaded", "Loading"]

_MAX_ANSWER = 1 << 20
_MAX_DESCRIPTORS = 128
_TIMEOUT_S = 120

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
            raise _failure(answer, complaints)
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

    def _next_child(self) -> "_Child":
        return _Child(self._pythons.pop(0), self._message)

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


class _Child:
    """One run of ``bcc_child`` by one Python."""

    def __init__(self, python: str, message: str) -> None:
        self._ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._ours.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _MAX_ANSWER)
            theirs.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _MAX_ANSWER)
            # -I: nothing of the caller's directory or PYTHONPATH may pose as BCC.
            self._process = subprocess.Popen(
                [python, "-I", str(COMPILER), str(theirs.fileno())],
                stdin=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=[theirs.fileno()],
                env=_environment(),
                encoding="utf-8",
                errors="backslashreplace",
                # Ctrl-C is for gilscope; the compiler ends when nobody wants its answer.
                start_new_session=True,
            )
        self._begin(message)

    def answer(self) -> tuple[dict[str, Any], list[int], str]:
        """Return the answer, its descriptors, and what the compiler said besides."""
        with self._ours, self._process as process:
            try:
                _, complaints = process.communicate(timeout=_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                raise KernelOrBccMissing(
                    f"BCC did not finish compiling within {_TIMEOUT_S} s"
                ) from None
            raw, descriptors, _, _ = socket.recv_fds(self._ours, _MAX_ANSWER, _MAX_DESCRIPTORS)
        for fd in descriptors:
            # A command that is started and traced must not get hold of the maps.
            os.set_inheritable(fd, False)  # noqa: FBT003 - the only way to call it
        if not raw:
            message = f"exit status {process.returncode}"
            return {"error": "crash", "message": message}, [], complaints
        return json.loads(raw), list(descriptors), complaints

    def cancel(self) -> None:
        """End it without an answer."""
        with self._ours, self._process as process:
            process.kill()

    def _begin(self, message: str) -> None:
        stdin = self._process.stdin
        if stdin is None:
            return
        # A child that is already gone says why in its answer, or in having none.
        with contextlib.suppress(BrokenPipeError):
            stdin.write(message)
        with contextlib.suppress(BrokenPipeError):
            stdin.close()
        # `communicate` must not look for it.
        self._process.stdin = None


def _environment() -> dict[str, str]:
    environment = dict(os.environ)
    headers = find_headers(environment, os.uname().release)
    if headers is not None:
        environment["BCC_KERNEL_SOURCE"] = str(headers)
    return environment


def _failure(answer: Mapping[str, Any], complaints: str) -> Exception:
    kind, message = answer["error"], answer["message"]
    limits = low_limits()
    if kind in ("no-bcc", "not-bcc"):
        return _absence(answer, limits)
    detail = complaints.strip()
    # BCC makes the maps while it compiles, and calls it a failure to compile when it may not.
    if _is_refused(answer):
        said = f" ({message})" if kind == "load" else ""
        return NotPermitted(f"the kernel refused gilscope's BPF programs{said}")
    if "kernel headers" in detail or "Unable to find" in detail:
        return KernelOrBccMissing(
            "BCC found no kernel headers to compile against",
            remedy="Install those of this kernel (apt install linux-headers-$(uname -r)), or name "
            "one complete tree of any version in BCC_KERNEL_SOURCE.",
        )
    what = f"BCC could not {'load' if kind == 'load' else 'compile'} the probes: {message}"
    if limits:
        # BCC does not say what it has run out of.
        return LimitReached(f"{what}; limits of this process are low: {limits}")
    return KernelOrBccMissing(what + (f"\n{detail}" if detail else ""))


def _absence(answer: Mapping[str, Any], limits: str) -> Exception:
    message = answer["message"]
    if answer["error"] == "not-bcc":
        return KernelOrBccMissing(
            f"the Python module 'bcc' in {message} is not BCC, the BPF compiler",
            remedy="Remove that package (pip uninstall bcc) and: apt install python3-bpfcc",
        )
    if answer.get("is_there") and limits:
        return LimitReached(
            f"BCC cannot be loaded: {message}; limits of this process are low: {limits}"
        )
    return KernelOrBccMissing(
        f"no Python here can import BCC ({message})",
        remedy="Install it: apt install python3-bpfcc",
    )


def _is_refused(answer: Mapping[str, Any]) -> bool:
    if answer.get("errno") in (errno.EPERM, errno.EACCES):
        return True
    try:
        os.close(syscalls.create_array_map())
    except OSError as error:
        return error.errno in (errno.EPERM, errno.EACCES)
    return False


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
