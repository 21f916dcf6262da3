"""Has the locks of all traced processes sampled, where windows do not cover all the time."""

from collections.abc import Sequence
from functools import partial
from random import Random

from gilscope.gil.probes.coverage import NEVER_OPEN
from gilscope.gil.tracing.lock_sampler import LockSampler
from gilscope.gil.tracing.process import AttachedProcess
from gilscope.process.memory_reader import Answer
from gilscope.process.reads import read_of_each

__all__ = ["HeldTime"]

_MOST_LOCKS = 64
"""Of one process: a sample of each costs 2 to 3 us. The held time of others is not known."""


class HeldTime:
    """Estimates for each lock how long it is held outside of windows."""

    def __init__(self, error: float | None, *, windows_cover_all: bool) -> None:
        """Look as often as *error* wants it; see `LockSampler`.

        Where *windows_cover_all*, in full mode, nothing is left to be estimated of a process that
        has any; of one whose holds nobody sees there is.
        """
        self._windows_cover_all = windows_cover_all
        self._sampler = LockSampler(Random(), error=error)  # noqa: S311 - of no secret

    @property
    def cpu_ns(self) -> int:
        """CPU time that sampling the locks has taken."""
        return self._sampler.cpu_ns

    def begin(self, traced: AttachedProcess) -> None:
        """Learn from the windows of *traced*, which has just got them, what they cover."""
        if traced.window is not None:
            traced.window.tell_coverage(partial(self._sampler.cover, traced.pid))

    def sample(self, traced: AttachedProcess) -> None:
        """Sample the locks of *traced*, and take over what has been estimated of them."""
        self.sample_each([traced])[0].get()

    def sample_each(self, processes: Sequence[AttachedProcess]) -> list[Answer[None]]:
        """Do the same for each of *processes*; return whether its memory could be read."""
        begun = [self._begun(each) for each in processes]
        asked = [each for each, answer in zip(processes, begun, strict=True) if answer.result]
        answers = iter(
            read_of_each([(each.reads, partial(self._sampler.sample, each.pid)) for each in asked])
        )
        return [
            self._noted(traced, next(answers)) if answer.result else Answer(error=answer.error)
            for traced, answer in zip(processes, begun, strict=True)
        ]

    def _noted(self, traced: AttachedProcess, answer: Answer[None]) -> Answer[None]:
        if answer.error is None:
            for cond in traced.sampled_held_ns:
                traced.sampled_held_ns[cond] = self._sampler.figures(traced.pid, cond).held_ns
        return answer

    def _begun(self, traced: AttachedProcess) -> Answer[bool]:
        """Return what `_has_begun` does: whatever fails costs one process alone its credit."""
        try:
            return Answer(self._has_begun(traced))
        except Exception as error:  # noqa: BLE001 - it is raised where it is told of
            return Answer(error=error)

    def _has_begun(self, traced: AttachedProcess) -> bool:
        """Return whether any lock of *traced* is sampled, from now on at the latest."""
        if traced.ended:
            return False
        for cond in self._unsampled(traced):
            coverage = NEVER_OPEN if traced.window is None else traced.window.coverage
            self._sampler.add(traced.pid, cond, traced.memory, coverage, traced.runtime.lock_word)
            traced.sampled_held_ns[cond] = 0
        return bool(traced.sampled_held_ns)

    def unanswered(self) -> int | None:
        """Return the process whose memory does not answer, None if there is none.

        To be asked a few times a second.
        """
        return self._sampler.unanswered()

    def is_behind(self, traced: AttachedProcess) -> bool:
        """Return whether locks of *traced* are to be sampled that are not sampled yet."""
        return not traced.ended and bool(self._unsampled(traced))

    def _unsampled(self, traced: AttachedProcess) -> list[int]:
        if self._windows_cover_all and traced.window is not None:
            return []
        left = _MOST_LOCKS - len(traced.sampled_held_ns)
        if left <= 0 or len(traced.sampled_held_ns) == len(traced.gils):
            return []
        new = traced.gils.keys() - traced.sampled_held_ns.keys()
        return sorted(new, key=lambda cond: traced.gils[cond].interpreter_id)[:left]

    def drop(self, pid: int) -> None:
        """Sample the locks of *pid* no more."""
        self._sampler.drop(pid)

    def close(self) -> None:
        """Sample nothing any more."""
        self._sampler.close()
