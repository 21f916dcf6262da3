"""The probes of full mode in one process: put in for a window, taken out behind it."""

from collections.abc import Sequence
from concurrent.futures import Future

from gilscope.bpf.uprobes.hooks import Hook, Uprobes
from gilscope.values import dataclass

__all__ = ["WindowProbes", "WindowSites"]


@dataclass(frozen=True, slots=True)
class WindowSites:
    """Where holds are seen to begin and to end, and what that does to them."""

    acquires: Sequence[Hook]
    releases: Sequence[Hook]
    inside_hold_ns: int
    """So much longer a hold becomes by the traps at its ends."""


class WindowProbes:
    """Those at the acquire and those at the release sites, which may stay longer."""

    def __init__(self, pid: int, slot: int, uprobes: Uprobes, sites: WindowSites) -> None:
        """Have none; later ones are at *sites* in process *pid*, and count in *slot*."""
        self._pid = pid
        self._slot = slot
        self._uprobes = uprobes
        self._sites = sites
        self._acquires: list[int] = []
        self._releases: list[int] = []
        self._closing: list[Future[None]] = []

    @property
    def see_releases(self) -> bool:
        """Whether the end of a hold is seen."""
        return bool(self._releases)

    @property
    def are_closing(self) -> bool:
        """Whether some are still being taken out."""
        self._closing = [each for each in self._closing if not each.done()]
        return bool(self._closing)

    @property
    def close_unseen(self) -> bool:
        """Whether traps that come while probes are being taken out are not seen."""
        return not self._uprobes.has_links

    def open(self) -> None:
        """Put in all that are not there; raises what `Uprobes.open` raises."""
        # Ends before beginnings: a hold whose end is not seen must not begin.
        if not self._releases:
            self._releases = self._opened(self._sites.releases)
        self._acquires = self._opened(self._sites.acquires)

    def close_acquires(self) -> None:
        """Begin to take out those that see holds begin."""
        self._closing += self._uprobes.close(self._acquires)
        self._acquires = []

    def close_releases(self) -> list[Future[None]]:
        """Begin to take out those that see holds end; return what says when all are out."""
        self._closing += self._uprobes.close(self._releases)
        self._releases = []
        return self._closing

    def _opened(self, hooks: Sequence[Hook]) -> list[int]:
        return self._uprobes.open(self._pid, hooks, self._slot, is_window=True)
