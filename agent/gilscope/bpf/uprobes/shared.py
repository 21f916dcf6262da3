"""Probes that are in place once for a file, however many of those who run it are traced.

Each probe that is put into one process alone has the kernel go through all processes that map the
file, so that to trace all of a thousand workers took a million steps. These are in all of them, and
the programs have to tell whose trap it is; one that is not traced pays for that with each.
"""

from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import field

from gilscope.bpf.uprobes.hooks import Hook, Uprobes
from gilscope.values import dataclass

__all__ = ["FileIdentity", "SharedProbes"]

FileIdentity = tuple[int, int]
"""Device and inode of a file that stays open while its probes are in place."""

_Key = tuple[FileIdentity, tuple[tuple[str, int], ...]]


@dataclass(slots=True)
class _Placed:
    key: _Key
    """The same object for a thousand processes."""
    groups: list[int]
    losses: int
    """Of keepers, when they were put in place: with the next one they have gone."""
    pids: set[int] = field(default_factory=set)


class SharedProbes:
    """Who needs which probes that everybody has. To be called under one lock."""

    def __init__(self, uprobes: Uprobes) -> None:
        """Place them by *uprobes*."""
        self._uprobes = uprobes
        self._placed: dict[_Key, _Placed] = {}
        self._key_of: dict[int, _Key] = {}
        self._split: dict[_Key, set[int]] = {}
        """Who has its own of what is not to be shared any more, as long as anybody has."""

    @property
    def pids(self) -> list[int]:
        """Who needs any."""
        return list(self._key_of)

    def join(self, pid: int, file: FileIdentity, hooks: Sequence[Hook]) -> None:
        """Have *hooks*, all of *file*, in place as long as *pid* needs them.

        Raises what `Uprobes.open` raises.
        """
        key = _key(file, hooks)
        placed = self._placed.get(key)
        if placed is None or placed.losses != self._uprobes.losses:
            # Asked before: a keeper that is lost meanwhile makes the probes be placed once more.
            losses = self._uprobes.losses
            groups = self._uprobes.open(pid, hooks, cookie=0, is_for_all=True)
            pids = set() if placed is None else placed.pids
            placed = self._placed[key] = _Placed(key, groups, losses, pids)
        placed.pids.add(pid)
        self._key_of[pid] = placed.key

    def has_own(self, pid: int, file: FileIdentity, hooks: Sequence[Hook]) -> bool:
        """Return whether *hooks* of *file* are to be put into *pid* alone, which has them then."""
        own = self._split.get(_key(file, hooks))
        if own is not None:
            own.add(pid)
        return own is not None

    def sharing(self, pid: int) -> set[int]:
        """Return who needs the same probes as *pid*, itself among them."""
        key = self._key_of.get(pid)
        return set() if key is None else set(self._placed[key].pids)

    def split(self, pid: int) -> list[Future[None]]:
        """Begin to take out what *pid* shares with others, for each to have its own from now on.

        Return what says when it is out.
        """
        key = self._key_of.get(pid)
        if key is None:
            return []
        placed = self._placed.pop(key)
        for each in placed.pids:
            del self._key_of[each]
        self._split[key] = placed.pids
        return self._uprobes.close(placed.groups)

    def leave(self, pid: int) -> list[Future[None]]:
        """Begin to take out what only *pid* has needed; return what says when it is out."""
        key = self._key_of.pop(pid, None)
        if key is None:
            self._forget_own(pid)
            return []
        placed = self._placed[key]
        placed.pids.discard(pid)
        if placed.pids:
            return []
        del self._placed[key]
        return self._uprobes.close(placed.groups)

    def _forget_own(self, pid: int) -> None:
        for key in [key for key, own in self._split.items() if pid in own]:
            self._split[key].discard(pid)
            if not self._split[key]:
                # The file may go, and another one get its number.
                del self._split[key]


def _key(file: FileIdentity, hooks: Sequence[Hook]) -> _Key:
    return file, tuple((hook.program, hook.offset) for hook in hooks)
