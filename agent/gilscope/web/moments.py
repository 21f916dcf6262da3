"""What tells a report of the last minutes when a process has waited most."""

from collections.abc import Callable
from typing import Final

from gilscope.model.locks import LockMoment
from gilscope.model.timeline import Moment
from gilscope.values import dataclass

__all__ = ["NO_MOMENTS", "Moments"]


def _no_moment(_pid: int, _since_ns: int) -> None:
    """Return that it is not known."""


@dataclass(frozen=True, slots=True)
class Moments:
    """Each by the pid, and a time before which nothing counts; None: not known, or no wait."""

    gil: Callable[[int, int], Moment | None] = _no_moment
    locks: Callable[[int, int], LockMoment | None] = _no_moment


NO_MOMENTS: Final = Moments()
