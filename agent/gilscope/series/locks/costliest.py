"""The places at which threads have waited for locks, as reports rank them."""

from collections.abc import Hashable, Iterable, Sequence

from gilscope.model.locks import LockKind, LockTotals, LockWait
from gilscope.model.stack import Stack
from gilscope.naming.places import place_of
from gilscope.text.units import percent
from gilscope.values import dataclass

__all__ = ["LockPlace", "OtherEnd", "places_of"]

_ENDED_BY = {
    LockKind.WORLD_STOP: "ended by",
    LockKind.WORLD_STOP_REQUEST: "the last to stop",
}
"""What the thread did that woke the waiting one, where it did not release a lock."""
_NEARLY_ALL = 0.99


@dataclass(frozen=True, slots=True)
class OtherEnd:
    """Where the thread stood that has caused most of the time of some waits."""

    words: str
    """What it did: ``held by`` or ``released by``."""
    stack: Stack
    share: float
    """Of that time, 0 to 1."""

    @property
    def is_of_all(self) -> bool:
        """Whether that is known of nearly all of the time."""
        return self.share > _NEARLY_ALL

    @property
    def part(self) -> str:
        """Of how much of the time that is known, and a space; empty where it is nearly all."""
        return "" if self.is_of_all else f"{percent(self.share)} "

    @property
    def in_short(self) -> str:
        """What it did, and of how much of the time that is known: ``80 % held by``."""
        return f"{self.part}{self.words}"


@dataclass(frozen=True, slots=True)
class LockPlace:
    """Waits for the same kind of lock, of the same type, in the same function."""

    waits: Sequence[LockWait]
    """By thread and by line, the costliest first; at least one."""

    @property
    def kind(self) -> LockKind:
        """What they were for."""
        return self.waits[0].kind

    @property
    def stack(self) -> Stack:
        """The costliest of their stacks."""
        return self.waits[0].stack

    @property
    def wait_ns(self) -> int:
        """All that was lost there."""
        return sum(each.wait_ns for each in self.waits)

    @property
    def slept_ns(self) -> int:
        """The part of that in which threads slept."""
        return sum(each.slept_ns for each in self.waits)

    @property
    def number(self) -> int:
        """How many waits that were."""
        return sum(each.waits for each in self.waits)

    @property
    def longest_ns(self) -> int:
        """The longest of them."""
        return max(each.longest_ns for each in self.waits)

    def held(self) -> OtherEnd | None:
        """Return who had the lock when most of them by time began; None: that is not known."""
        return self._costliest("held by", [(wait.held, wait.wait_ns) for wait in self.waits])

    def released(self) -> OtherEnd | None:
        """Return who has ended most of them by time; None: that is not known of any."""
        words = _ENDED_BY.get(self.kind, "released by")
        return self._costliest(words, [(wait.released, wait.wait_ns) for wait in self.waits])

    def other_ends(self) -> Sequence[OtherEnd]:
        """Return who had the lock, and who has released it, as far as that is known."""
        return [each for each in (self.held(), self.released()) if each is not None]

    def _costliest(self, words: str, ends: Iterable[tuple[Stack, int]]) -> OtherEnd | None:
        found: dict[Stack, int] = {}
        for stack, wait_ns in ends:
            if stack.is_known:
                found[stack] = found.get(stack, 0) + wait_ns
        if not found:
            return None
        most = max(found, key=found.__getitem__)
        return OtherEnd(words, most, found[most] / max(1, self.wait_ns))


def places_of(totals: LockTotals) -> Sequence[LockPlace]:
    """Return where threads have lost time, the costliest first."""
    found: dict[Hashable, list[LockWait]] = {}
    for thread in totals.threads:
        for wait in thread.waits:
            if wait.kind.is_contention and wait.wait_ns:
                key = (wait.kind, wait.type, place_of(wait.stack))
                found.setdefault(key, []).append(wait)
    places = [LockPlace(sorted(waits, key=lambda each: -each.wait_ns)) for waits in found.values()]
    return sorted(places, key=lambda place: -place.wait_ns)
