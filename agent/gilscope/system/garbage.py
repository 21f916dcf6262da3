"""Has the garbage of a long-lived agent collected at times of its own."""

import gc
import time
from collections.abc import Callable
from typing import Final

from gilscope.system.malloc import give_back

__all__ = ["Sweeps", "spare_old_objects"]

_YOUNG: Final = 50_000
_YOUNG_SWEEPS: Final = 20
_NEVER: Final = 1_000_000
_REST: Final = 500
"""For so many times what it took there is no sweep: it costs a five hundredth of a core at most."""
_LEAST_REST_S: Final = 300.0


def spare_old_objects() -> None:
    """Let the collector look at young objects alone, and at them less often.

    What is known of a thousand processes is a million objects, and as many are made by each scrape.
    Python then looks at all of them again and again, while the scrape waits: a quarter of its time.
    Nearly nothing of it is garbage, which takes cycles to be. What there is now, the modules above
    all, is never looked at again, nor what little of it is garbage.
    """
    gc.freeze()
    gc.set_threshold(_YOUNG, _YOUNG_SWEEPS, _NEVER)


class Sweeps:
    """Collects what there is after all, now and then, and gives back what that has taken."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Begin to rest, by *clock*, which tells seconds."""
        self._clock = clock
        self._due_s = clock() + _LEAST_REST_S

    def sweep_if_due(self) -> bool:
        """Collect all garbage if that is due; return whether it was."""
        began_s = self._clock()
        if began_s < self._due_s:
            return False
        gc.collect()
        give_back()
        ended_s = self._clock()
        self._due_s = ended_s + max(_LEAST_REST_S, _REST * (ended_s - began_s))
        return True
