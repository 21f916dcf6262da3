"""Reads the bytes of an STM log, in pieces of any size, and says what is in them so far."""

import sys
from array import array
from collections.abc import Mapping, Sequence
from typing import Any

from gilscope.model.histogram import Histogram
from gilscope.model.stm_log import BINS, Conflict, Gap, LogFile, LogTotals, OverTime, StmLog
from gilscope.stm_log import _stm_log
from gilscope.values import dataclass

__all__ = ["SEMANTICS", "TABLES", "LogReader", "Reading", "is_log", "time_line_cells"]

SEMANTICS = ("S0", "S1", "S2")
TABLES = _stm_log.TABLES
"""Names of the tables that say which number is which event."""

_EARLY_CELLS, _CELLS = 48, 60
_TABLES_OF_EARLY_TOOLS = {"C7", "A11", "B12", "C13"}


@dataclass(frozen=True, slots=True)
class Reading:
    """How to read a log."""

    events_table: str | None = None
    """One of `TABLES`; None: it is found out."""
    semantics: str | None = None
    """One of `SEMANTICS`; None: those that belong to the table."""
    is_original: bool = False
    """With exactly the figures of the original tool."""


def time_line_cells(events_table: str) -> int:
    """Return how many cells the time lines had that the original made of such a log."""
    return _EARLY_CELLS if events_table in _TABLES_OF_EARLY_TOOLS else _CELLS


class LogReader:
    """One file that is read piece by piece. It can be asked for its sums at any time."""

    def __init__(
        self, name: str, reading: Reading | None = None, known: Sequence[StmLog] = ()
    ) -> None:
        """Begin to read; *known* are the logs of an earlier reading, for exact time lines."""
        self._name = name
        self._reading = reading or Reading()
        self._cells = [time_line_cells(log.events_table) for log in known]
        self._log = _stm_log.Log(
            table=self._reading.events_table,
            semantics=self._reading.semantics,
            original=self._reading.is_original,
            scales=tuple(
                (log.first_ns, log.totals.total_ns, cells)
                for log, cells in zip(known, self._cells, strict=True)
            ),
        )

    def feed(self, content: bytes | bytearray | memoryview) -> bool:
        """Take the next bytes of the file, and return whether it can still be a log."""
        return self._log.feed(content)

    def finish(self) -> None:
        """Say that nothing follows: what is left is the cut end of a record."""
        self._log.finish()

    def snapshot(self) -> LogFile:
        """Return what has been read; raises ValueError where it is not the beginning of a log."""
        return self._file(self._log.snapshot())

    def sums(self) -> LogFile:
        """Return the same without counts over time: cheap enough for every few seconds."""
        return self._file(self._log.sums())

    def _file(self, found: Mapping[str, Any]) -> LogFile:
        if found["state"] == "not an STM log":
            raise ValueError("does not begin as an STM log does")
        return LogFile(
            name=self._name,
            size=found["bytes"],
            logs=tuple(
                self._part(number, part, found["layout"])
                for number, part in enumerate(found["parts"])
            ),
            cut_tail_bytes=found["cut_tail_bytes"],
            trailing_gap=_gap(found["gap"]) if found["state"] == "gap" else None,
        )

    def _part(self, number: int, part: Mapping[str, Any], layout: str) -> StmLog:
        is_original = self._reading.is_original
        span_ns = part["newest_ns"] - part["oldest_ns"]
        # The original takes the last record for the newest, also where the clock has gone back.
        charged_ns = max(0, part["charged_until_ns"] - part["first_ns"])
        totals = _totals(part["totals"], charged_ns if is_original else span_ns)
        scale = _Scale(part, self._cells[number] if number < len(self._cells) else BINS, totals)
        return StmLog(
            name=self._name,
            layout=layout,
            events_table=part["table"],
            semantics=part["semantics"],
            is_original=is_original,
            offset=part["offset"],
            gap=_gap(part["gap"]) if number else None,
            records=part["records"],
            counts=part["counts"],
            with_marker=part["with_marker"],
            threads=part["threads"],
            first_ns=part["first_ns"],
            last_ns=part["last_ns"],
            span_ns=span_ns,
            backward_timestamps=part["backward_steps"],
            totals=totals,
            conflicts=_conflicts(part["entries"], scale),
            commits_over_time=scale.over_time(part["commits"]),
            aborts_over_time=scale.over_time(part["aborts"]),
        )


class _Scale:
    """Turns the bins of one log into plain values."""

    def __init__(self, part: Mapping[str, Any], cells: int, totals: LogTotals) -> None:
        self._begin_ns = int(part["origin_ns"])
        self._cells = cells
        self._step_ns = 1 << part["bin_shift"] if cells == BINS else totals.total_ns // cells

    def over_time(self, bins: bytes) -> OverTime:
        """Return the counts in *bins*, which are 32-bit numbers of this machine."""
        counts = array("I", bins)
        return OverTime(self._begin_ns, self._step_ns, tuple(counts[: self._cells]))


def is_log(beginning: bytes) -> bool:
    """Return whether a file that begins so can be an STM log."""
    log = _stm_log.Log()
    log.feed(beginning)
    return bool(log.snapshot()["state"] != "not an STM log")


def _gap(found: tuple[int, int, int]) -> Gap:
    offset, nul_bytes, size = found
    return Gap(offset, nul_bytes, size)


def _totals(found: Mapping[str, Any], total_ns: int) -> LogTotals:
    sums = {key: value for key, value in found.items() if not key.endswith("_slots")}
    return LogTotals(
        total_ns=total_ns,
        **sums,
        committed_runs=Histogram(found["committed_slots"], found["committed_ns"]),
        aborted_runs=Histogram(found["aborted_slots"], found["aborted_ns"]),
    )


def _conflicts(entries: Sequence[Sequence[Any]], scale: _Scale) -> tuple[Conflict, ...]:
    conflicts = [
        Conflict(
            kind=sys.intern(kind),
            markers=_markers(first, second),
            lost_ns=lost_ns,
            paused_ns=paused_ns,
            count=count,
            over_time=scale.over_time(bins),
            is_rest=is_rest,
        )
        for kind, first, second, lost_ns, paused_ns, count, is_rest, bins in entries
    ]
    # The original knows no order among equals. One that is always the same can be tested.
    return tuple(
        sorted(
            conflicts, key=lambda each: (-each.lost_ns - each.paused_ns, each.kind, each.markers)
        )
    )


def _markers(first: bytes, second: bytes) -> tuple[str, ...]:
    # Names of files are bytes, and need not be text.
    texts = [marker.decode("utf-8", "backslashreplace") for marker in (first, second)]
    while texts and not texts[-1]:
        texts.pop()
    return tuple(texts)
