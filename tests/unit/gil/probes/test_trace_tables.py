"""What is read of the tables with an entry for each trace, and when an entry is taken away."""

from collections import Counter, defaultdict
from typing import cast

import pytest

from gilscope.bpf.map import Table
from gilscope.gil.abi import HeldTraceKind, Quota
from gilscope.gil.probes.quotas import Quotas
from gilscope.gil.probes.trace_tables import TraceTables
from gilscope.gil.totals.held_traces import RawHeldTrace
from gilscope.gil.totals.raw import RawProcess
from support.tracing.memory_table import MemoryTable

_PID, _SLOT = 4711, 3
_OLD, _NEW = 0, 1
_TRACE = "05000000000000000600000000000000"
_DROP = (HeldTraceKind.SLOW_DROP, _TRACE)


class _Tables:
    """The tables that the programs write."""

    def __init__(self) -> None:
        names = ("traces", "held_traces", "drop_requests")
        self.by_name = {name: MemoryTable(name) for name in names}
        self._returned = MemoryTable("returned")
        quotas = Quotas(cast("Table", self._returned))
        quotas.begin(_PID, _SLOT)
        self._reader = TraceTables(cast("dict[str, Table]", self.by_name), quotas)

    def hold(self, ns: int, times: int, generation: int, kind: int = _DROP[0]) -> None:
        """Write what a trace has kept the lock for."""
        key = {"trace_begin": 5, "trace_end": 6, "tgid": _PID, "kind": kind}
        counted = {"ns": ns, "times": times, "longest_ns": ns, "longest_ended_ns": 7}
        rest = {"longest_span": 8, "longest_cond": 9, "route": b"/x\0\0"}
        self.by_name["held_traces"].put({**key, "generation": generation}, {**counted, **rest})

    def ask(self, trace: str) -> None:
        """Let the holder be asked to drop the lock, while it serves *trace*."""
        record = {"asked_ns": 1, "trace": bytes.fromhex(trace) + bytes(8)}
        self.by_name["drop_requests"].put({"cond": 9, "tgid": _PID}, record)

    def read(self) -> RawProcess:
        """Return what is read, where the entries of the old generation rest."""
        processes: dict[int, RawProcess] = defaultdict(RawProcess)
        counted: Counter[str] = Counter()
        self._reader.read(processes, counted, lambda generation: generation == _OLD)
        return processes[_PID]

    def given_back(self) -> int:
        """Return how many entries the process may have again."""
        records = self._returned.records.values()
        return sum(int(record["entries"][Quota.TRACES]) for record in records)


@pytest.fixture
def tables() -> _Tables:
    """The tables, which are empty."""
    return _Tables()


def test_an_entry_at_rest_is_taken_away_once(tables: _Tables) -> None:
    """
    And what came later stays.
    """
    tables.hold(30, 2, _OLD)
    tables.hold(11, 1, _NEW)
    first, second = tables.read(), tables.read()

    assert {_DROP: RawHeldTrace(30, 2, 30, 7, 8, 9, "/x")} == first.taken.held_traces
    assert {} == second.taken.held_traces
    assert [11, 11] == [each.held_traces[_DROP].ns for each in (first, second)]
    assert 1 == tables.given_back()


def test_both_kinds_are_told_apart(tables: _Tables) -> None:
    """
    A hold that was asked to end is in both.
    """
    tables.hold(30, 1, _NEW)
    tables.hold(35, 1, _NEW, HeldTraceKind.LONG_HOLD)

    assert {_DROP: 30, (HeldTraceKind.LONG_HOLD, _TRACE): 35} == {
        key: each.ns for key, each in tables.read().held_traces.items()
    }


def test_an_entry_stays_while_the_request_is_unanswered(tables: _Tables) -> None:
    """
    It is where the answer will be counted, however late; another trace does not keep it.
    """
    tables.hold(0, 0, _OLD)
    tables.ask(_TRACE)
    before = tables.read()
    tables.hold(5_000, 1, _OLD)
    tables.ask("ff" * 16)
    after = tables.read()

    assert ({}, 0) == (before.taken.held_traces, before.held_traces[_DROP].times)
    assert 5_000 == after.taken.held_traces[_DROP].ns
    assert 1 == tables.given_back()
