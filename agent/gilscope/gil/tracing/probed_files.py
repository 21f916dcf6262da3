"""Which processes are probed in the same file, and whose turn it is to have a window there."""

from collections.abc import Hashable
from dataclasses import field
from typing import Final

from gilscope.budget.prices import Sharing
from gilscope.gil.tracing.process import AttachedProcess
from gilscope.values import dataclass

__all__ = ["ProbedFile", "ProbedFiles"]

_S: Final = 1_000_000_000

_MOST_WINDOWS: Final = 6
"""Open at a time in auto mode, in processes that share a file: the kernel asks all of them at each
trap of each, so that with these a trap costs about twice what it does alone."""
_TURN_NS: Final = 10 * _S
"""How long a window may last where others are waiting for their turn."""


@dataclass(slots=True)
class ProbedFile:
    """The processes that are probed at the same places."""

    targets: int = 0
    open_in: set[int] = field(default_factory=set)
    """Those with an open window."""
    refused_ns: int = -_TURN_NS
    """When there was no room for a window."""

    @property
    def sharing(self) -> Sharing:
        """How many share what a trap costs."""
        return Sharing(self.targets, len(self.open_in))

    @property
    def is_full(self) -> bool:
        """Whether there is no room for another window."""
        return len(self.open_in) >= _MOST_WINDOWS

    @property
    def processes_per_window(self) -> float:
        """How many processes there are for each window that may be open; 1 at the least."""
        return max(1.0, self.targets / _MOST_WINDOWS)

    def must_make_room(self, opened_ns: int, now_ns: int) -> bool:
        """Return whether a window that was opened at *opened_ns* has had its turn *now_ns*."""
        has_had_its_turn = now_ns - opened_ns >= _TURN_NS
        are_others_waiting = now_ns - self.refused_ns < _TURN_NS
        return has_had_its_turn and are_others_waiting and self.is_full


class ProbedFiles:
    """All files in which processes are probed."""

    def __init__(self) -> None:
        self._files: dict[Hashable, ProbedFile] = {}
        """By what the kernel takes for one file."""

    def join(self, traced: AttachedProcess) -> ProbedFile:
        """Return the file of a process that is probed from now on."""
        file = self._files.setdefault(_file_of(traced), ProbedFile())
        file.targets += 1
        return file

    def leave(self, traced: AttachedProcess, file: ProbedFile) -> None:
        """Let *traced* be probed in *file* no more."""
        file.targets -= 1
        file.open_in.discard(traced.pid)
        if not file.targets:
            self._files.pop(_file_of(traced), None)


def _file_of(traced: AttachedProcess) -> Hashable:
    # Each container has a device of its own for the layer that it shares with others, but the
    # kernel hangs all probes on the one file below. A build is in one file, as a rule; where it is
    # in several, a trap is taken to cost more than it does.
    build = traced.target.build
    if traced.target.file == build.file and build.build_id:
        return build.build_id
    return traced.target.file.identity
