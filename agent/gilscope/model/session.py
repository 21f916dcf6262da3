"""What one recording has seen of all the processes that it was about."""

from gilscope.model.gil import Recording, Refusal
from gilscope.model.locks import LockRecording
from gilscope.model.transactions import StmRecording
from gilscope.values import dataclass

__all__ = ["Session"]


@dataclass(frozen=True, slots=True)
class Session:
    """One process, or a process with its children, or all that were chosen, for a while."""

    duration_ns: int
    """From the attachment to the first process to the end; most processes are seen for less."""
    mode: str
    """``contention`` or ``full``."""
    recordings: tuple[Recording, ...]
    """Of the GIL, a process each, those that lost the most time first. One that has replaced its
    program is there twice."""
    transactions: tuple[StmRecording, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    """Pythons that were chosen and could not be traced."""
    left_out: int = 0
    """Processes that have ended, and programs that they had before, whose figures were given up,
    because there were too many."""
    locks: tuple[LockRecording, ...] = ()
    """A process each, beside its GIL where it has one."""

    @property
    def is_one_process(self) -> bool:
        """Whether it is all about one, so that nothing has to be said of others."""
        with_gil = {recording.observation.process.pid for recording in self.recordings}
        locks_alone = [each for each in self.locks if each.observation.process.pid not in with_gil]
        others = len(self.refusals) + self.left_out
        told = len(self.recordings) + len(self.transactions) + len(locks_alone)
        return told == 1 and not others
