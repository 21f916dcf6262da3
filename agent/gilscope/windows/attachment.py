"""A process that is observed in windows, or that was."""

from abc import abstractmethod
from typing import Protocol

from gilscope.process.attachment import Attachment
from gilscope.process.breakpoints import first_missing
from gilscope.values import dataclass
from gilscope.windows.window import ProbeWindow

__all__ = ["Target", "WindowedAttachment"]


class Target(Protocol):
    """What is known of a program before it is attached to."""

    def close(self) -> None:
        """Close its file."""


@dataclass(slots=True, kw_only=True)
class WindowedAttachment(Attachment):
    """Its breakpoints are there while its window is open."""

    window: ProbeWindow

    @property
    @abstractmethod
    def its_target(self) -> Target:
        """What it was attached by."""

    @abstractmethod
    def is_over(self) -> bool:
        """Return whether nothing is seen of the program any more; then `invalid` says why.

        It says nothing where the program has ended, or was replaced.
        """

    @property
    def is_to_be_attached_anew(self) -> bool:
        """Whether more could be seen of it by another method."""
        return False

    def observed_ns(self, at_ns: int) -> int:
        """Return for how long windows have been open until *at_ns*, since all probes were there."""
        return min(self.window.observed_ns(at_ns), max(0, at_ns - self.since_ns))

    def has_lost_probes(self) -> bool:
        """Return whether a probe has gone from the code: without it nothing seems to happen.

        Then `invalid` says so.
        """
        if self.ended or not self.window.is_open or self.window.has_used_up:
            return False
        try:
            missing = self.reads(lambda: first_missing(self.memory, self.breakpoints))
        except OSError:
            return False  # it runs another program, or does not answer, as `is_over` will say
        if missing is not None:
            self.invalid = f"its probe at {missing:#x} has gone: something writes over its code"
        return missing is not None
