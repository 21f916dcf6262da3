"""Traces the processes that `record` is about, and the ones that come later, until it is over."""

import argparse
import contextlib
import time
from collections.abc import Callable, Collection, Iterator

from gilscope.commands.options import chosen_targets
from gilscope.commands.recording.recorder import Recorder
from gilscope.commands.session import observe_until_end, scanning
from gilscope.discovery.scanner import Following, Scanner
from gilscope.discovery.selection import Choice, Kinship, choose_pids
from gilscope.model.session import Session
from gilscope.system import ending
from gilscope.tracing.tracer import Tracer

__all__ = ["Watching"]

_KEPT_S = float("inf")
"""Everything that was traced is reported."""
_REPLACED_S = 4.0
"""How long a process that has executed something may take to become a Python again."""
_PAUSE_S = 0.05


class Watching:
    """One recording under way."""

    def __init__(
        self,
        arguments: argparse.Namespace,
        tracer: Tracer,
        recorder: Recorder,
        named: Collection[int],
    ) -> None:
        """Trace with *tracer* the processes *named* and, as *arguments* say, further ones.

        It is over when those have ended that were named; where none was, never by itself.
        """
        self.is_held: Callable[[int], bool] = lambda _: False
        """Whether a process is somebody else's for now."""
        self._arguments = arguments
        self._tracer = tracer
        self._recorder = recorder
        self._named = frozenset(named)
        self._scanner: Scanner | None = None
        self._replaced_s = float("-inf")

    @contextlib.contextmanager
    def searching(self) -> Iterator[None]:
        """Find further processes until the block has ended."""
        if self._named and not self._arguments.children:
            yield
            return
        chosen = choose_pids() if self._named else chosen_targets(self._arguments)
        self._scanner = Scanner(
            self._tracer,
            self._but_held(chosen),
            self._named,
            following=Following(
                self._recorder.add, self._recorder.finish_program, ended_kept_s=_KEPT_S
            ),
        )
        with scanning(self._scanner, _PAUSE_S):
            yield

    def until_end(
        self, stopped: ending.Told, *, is_running: Callable[[], bool] = lambda: False
    ) -> None:
        """Trace until it is over, and nothing *is_running* that belongs to it either."""
        observe_until_end(
            self._tracer,
            self._arguments.duration,
            stopped,
            is_over=lambda: bool(self._named) and not (is_running() or self._is_traced()),
            ticked=self._ticked,
        )

    def session(self) -> Session:
        """Return what was recorded. Nothing is searched for any more."""
        return self._recorder.session(() if self._scanner is None else self._scanner.refusals())

    def _is_traced(self) -> bool:
        """Return whether one of those that were named is traced, or may be again."""
        is_soon = time.monotonic() < self._replaced_s + _REPLACED_S
        return is_soon or bool(self._named.intersection(self._tracer.pids))

    def _ticked(self, executed: Collection[int]) -> None:
        if self._scanner is not None:
            self._scanner.note_executed(executed)
            if self._named.intersection(executed):
                self._replaced_s = time.monotonic()
        self._recorder.tick()
        # A command that was started writes to the terminal by itself.
        if not self._arguments.command:
            self._recorder.tell_progress()

    def _but_held(self, choice: Choice) -> Choice:
        def is_wanted(pid: int, kinship: Kinship) -> bool:
            return not self.is_held(pid) and choice(pid, kinship)

        return is_wanted
