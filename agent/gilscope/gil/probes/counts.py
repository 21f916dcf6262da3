"""Reads out of the probes' tables what has been counted of every process."""

import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from gilscope.bpf.map import Table
from gilscope.gil.abi import Loss
from gilscope.gil.probes.blame_maps import BlameTables
from gilscope.gil.probes.window import Window
from gilscope.gil.totals.raw import RawProcess, RawTotals
from gilscope.model.histogram import Histogram

__all__ = ["CountTables"]


class CountTables:
    """The tables of threads, locks and losses."""

    def __init__(self, tables: Mapping[str, Table], blame: BlameTables) -> None:
        """Read *tables*, those of *blame* along with them."""
        self._tables = tables
        self._blame = blame
        self._stopped_ns: int | None = None
        self.fill: Mapping[str, int] = {}
        """How many entries each table held when it was last read."""

    def stop(self) -> None:
        """Let nothing count any more: what is read from now on is as of this instant."""
        if self._stopped_ns is None:
            self._blame.stop()
            self._stopped_ns = time.monotonic_ns()

    def read(self, windows: Mapping[int, Window]) -> RawTotals:
        """Return what the maps hold of all processes now; *windows* are by pid."""
        # The clock is read first: a wait that a record shows as in flight was so at this time.
        now_ns = time.monotonic_ns() if self._stopped_ns is None else self._stopped_ns
        processes: dict[int, RawProcess] = defaultdict(RawProcess)
        counted: Counter[str] = Counter()
        # Before the threads, as `Window.read` wants it.
        for pid, window in windows.items():
            processes[pid].locks = window.read(now_ns)
        for key, record in self._counted_items("threads", counted):
            whole = self._whole_thread(key, record)
            if whole is not None:
                processes[whole["tgid"]].threads[key["value"]] = whole
        # Next to the threads, whose waits in flight they complete.
        self._blame.read(processes, counted, now_ns)
        for key, record in self._counted_items("gils", counted):
            processes[key["tgid"]].gils[key["cond"]] = record
        for key, record in self._counted_items("histograms", counted):
            # Not kept as it is, with all its slots, until those of a thousand processes are read.
            histogram = Histogram(record["slots"], record["sum_ns"])
            processes[key["tgid"]].histograms[key["cond"], key["quantity"]] = histogram
        losses = {loss.number: loss for loss in Loss}
        for key, record in self._counted_items("lost_events", counted):
            processes[key["tgid"]].lost[losses[key["reason"]]] = record["value"]
        self.fill = dict(counted)
        return RawTotals(now_ns, dict(processes))

    def _counted_items(
        self, name: str, counted: Counter[str]
    ) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
        counted[name] = 0
        for item in self._tables[name].items():
            counted[name] += 1
            yield item

    def _whole_thread(self, key: dict[str, int], record: dict[str, int]) -> dict[str, int] | None:
        # The thread writes its record while it is copied; a torn copy shows two versions.
        again: dict[str, int] | None = record
        while again is not None and again["version_begin"] != again["version_end"]:
            again = self._tables["threads"].get(key)
        return again
