"""Puts uprobes into processes and takes them out again, without anybody waiting for that."""

import errno
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from gilscope import procfs
from gilscope.descriptors import RESERVED, most_descriptors
from gilscope.errors import KernelOrBccMissing, NotPermitted
from gilscope.kernel import syscalls

__all__ = ["Hook", "Uprobes"]

_CLOSERS = 16


@dataclass(frozen=True, slots=True)
class Hook:
    """One program at one place in one file."""

    program: str
    path: str
    """Under which the agent can open the file."""
    offset: int
    """In the file, bytes."""


class Uprobes:
    """Opens and closes the descriptors that hold uprobes in place."""

    def __init__(self, programs: Mapping[str, int], *, has_links: bool) -> None:
        """Use the loaded *programs*, by name; *has_links*: as links, else as perf events."""
        self._programs = programs
        self.has_links = has_links
        # Taking a probe out takes up to 0.2 s, whatever is waited for meanwhile; several at once
        # take hardly longer than one.
        self._closers = ThreadPoolExecutor(_CLOSERS, "gilscope-close")

    def open(self, pid: int, hooks: Iterable[Hook], cookie: int) -> list[int]:
        """Put *hooks* into *pid*, all or none; return the descriptors that hold them there.

        Raises NotPermitted, KernelOrBccMissing, or ProcessLookupError where the process has gone.
        """
        opened: list[int] = []
        try:
            for place, offsets in _grouped(hooks).items():
                try:
                    for fd in self._open(pid, place, offsets, cookie):
                        opened.append(fd)  # noqa: PERF402 - each counts, should the next one fail
                except OSError as error:
                    raise _refusal(error, pid, place[1], offsets) from error
            _leave_some(opened, pid)
        except BaseException:
            self.close(opened)
            raise
        return opened

    def close(self, descriptors: Iterable[int]) -> list[Future[None]]:
        """Begin to take probes out; return what says when they are."""
        return [self._closers.submit(os.close, fd) for fd in descriptors]

    def shut_down(self) -> None:
        """Wait until all are out that are to be."""
        self._closers.shutdown()

    def _open(
        self, pid: int, place: tuple[str, str], offsets: Sequence[int], cookie: int
    ) -> Iterator[int]:
        program, path = self._programs[place[0]], place[1]
        if self.has_links:
            yield syscalls.open_uprobes(path, offsets, program, pid, cookie)
            return
        for offset in offsets:
            yield syscalls.open_uprobe(path, offset, program, pid)


def _grouped(hooks: Iterable[Hook]) -> dict[tuple[str, str], list[int]]:
    places: dict[tuple[str, str], list[int]] = defaultdict(list)
    for hook in hooks:
        places[hook.program, hook.path].append(hook.offset)
    return places


def _leave_some(opened: Sequence[int], pid: int) -> None:
    if max(opened, default=0) >= most_descriptors() - RESERVED:
        raise KernelOrBccMissing(
            f"no room for the probes of process {pid}: gilscope may have only "
            f"{most_descriptors()} files open",
            remedy="Raise the limit: ulimit -Hn, or LimitNOFILE= in a systemd unit.",
        )


def _refusal(error: OSError, pid: int, path: str, offsets: Sequence[int]) -> Exception:
    # Of a process that has ended, the files that it had are not there any more either.
    if isinstance(error, ProcessLookupError) or not procfs.is_alive(pid):
        return ProcessLookupError(errno.ESRCH, os.strerror(errno.ESRCH))
    if isinstance(error, PermissionError):
        return NotPermitted(f"the kernel refused uprobes in process {pid} ({error.strerror})")
    shown = ", ".join(f"{offset:#x}" for offset in offsets)
    return KernelOrBccMissing(f"cannot put uprobes at {shown} of {path}: {error.strerror}")
