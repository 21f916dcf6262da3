"""Has the locks of all traced processes looked at, where windows do not cover all the time."""

from collections.abc import Mapping
from random import Random

from gilscope.gil.held_sampler import HeldSampler
from gilscope.gil.traced import Traced

__all__ = ["HeldTime"]


class HeldTime:
    """Estimates for each lock how long it is held outside of windows."""

    def __init__(self, traced: Mapping[int, Traced]) -> None:
        """Look at locks of *traced*, by pid."""
        self._traced = traced
        self._sampler = HeldSampler(self._observed_ns, Random())  # noqa: S311 - of no secret

    @property
    def cpu_ns(self) -> int:
        """CPU time that looking at the locks has taken."""
        return self._sampler.cpu_ns

    def look(self, traced: Traced) -> None:
        """Look at the locks of *traced*, and take over what has been estimated of them."""
        if traced.ended:
            return
        for cond in traced.gils.keys() - traced.sampled_held_ns.keys():
            self._sampler.add(traced.pid, cond, traced.memory)
            traced.sampled_held_ns[cond] = 0
        self._sampler.look(traced.pid)
        for cond in traced.sampled_held_ns:
            traced.sampled_held_ns[cond] = self._sampler.held_ns(traced.pid, cond)

    def drop(self, pid: int) -> None:
        """Look at the locks of *pid* no more."""
        self._sampler.drop(pid)

    def close(self) -> None:
        """Look at nothing any more."""
        self._sampler.close()

    def _observed_ns(self, pid: int, at_ns: int) -> int:
        traced = self._traced.get(pid)
        if traced is None or traced.window is None:
            return 0
        return traced.window.observed_at_most_ns(at_ns)
