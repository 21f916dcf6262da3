"""Captures of ``serve``: which are taken, and where they go."""

import argparse
import contextlib
import json
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence

from gilscope.dump.captures import Captures
from gilscope.dump.files import CaptureFiles
from gilscope.dump.watch import TracedProcesses
from gilscope.gil.tracing.account import GilAccount
from gilscope.model.gil import GilObservation
from gilscope.model.moment.capture import Capture
from gilscope.model.moment.dump import Dump
from gilscope.series.past import Past
from gilscope.text.printable import printable
from gilscope.text.units import NS_PER_S

__all__ = ["Capturing"]

_log = logging.getLogger(__name__)


class Capturing:
    """What is captured while the tracer runs; nothing unless it is wanted."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        above_s = arguments.capture_above
        self.limit_ns = 0 if above_s is None else round(above_s * NS_PER_S)
        """Waits that last so long are captured; 0: none are."""
        self._write: Callable[[Dump, str], None] = _to_log
        if arguments.capture_dir is not None:
            files = CaptureFiles(arguments.capture_dir, arguments.capture_files)
            self._write = _to_files(files)
        self.captures: Captures | None = None
        """While `running`."""

    def counts(self) -> Mapping[str, int]:
        """Return how many waits had which outcome; nothing where none are captured."""
        return {} if self.captures is None else self.captures.counts()

    def recent(self) -> Sequence[Capture] | None:
        """Return the last captures, the latest first; None where none are taken."""
        return None if self.captures is None else self.captures.recent()

    def on_long_wait(self, pid: int, tid: int) -> None:
        """Have *pid* captured, in which *tid* waits."""
        if self.captures is not None:
            self.captures.want(pid, tid)

    @contextlib.contextmanager
    def running(self, gils: GilAccount, past: Past[GilObservation]) -> Iterator[None]:
        """Capture what *gils* traces inside of the block; *past* knows what was before."""
        if not self.limit_ns:
            yield
            return
        processes = TracedProcesses(gils, past, self.limit_ns)
        captures = self.captures = Captures(processes.capture, self._write)
        captures.begin()
        try:
            yield
        finally:
            captures.close()
            processes.close()


def _to_log(dump: Dump, line: str) -> None:
    # It is asked for by an option of its own, whatever --log.level leaves out.
    level = max(logging.WARNING, _log.getEffectiveLevel())
    fields = {"capture": json.loads(line)}
    _log.log(level, "capture of pid %d", dump.pid, extra={"fields": fields})


def _to_files(files: CaptureFiles) -> Callable[[Dump, str], None]:
    def write(dump: Dump, line: str) -> None:
        path = files.write(dump, line)
        _log.warning("capture of pid %d: %s", dump.pid, printable(str(path)))

    return write
