"""Reads which requests waited, and which kept the lock, out of the probes' tables."""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import NamedTuple, TypeVar

from gilscope.bpf.map import Table
from gilscope.gil.abi import Quota
from gilscope.gil.probes.quotas import Quotas
from gilscope.gil.totals.held_traces import RawHeldTrace
from gilscope.gil.totals.raw import RawProcess, Taken
from gilscope.gil.totals.traces import RawTrace, trace_id
from gilscope.values import Record

__all__ = ["TraceTables"]

_TRACE_BYTES = 16

_Key = TypeVar("_Key")
_Sums = TypeVar("_Sums", RawTrace, RawHeldTrace)


class _Entry(NamedTuple):
    target: RawProcess | Taken
    kind: int
    trace: str
    record: Record
    """With its route as text."""


class TraceTables:
    """The tables with an entry for each trace. An entry at rest is taken away when it is read."""

    def __init__(self, tables: Mapping[str, Table], quotas: Quotas) -> None:
        """Give back to *quotas* what leaves them."""
        self._traces = tables["traces"]
        self._held_traces = tables["held_traces"]
        self._drop_requests = tables["drop_requests"]
        self._quotas = quotas

    def read(
        self,
        processes: Mapping[int, RawProcess],
        counted: Counter[str],
        is_at_rest: Callable[[int], bool],
    ) -> None:
        """Fill in what *processes* have; whether an entry rests, its generation says."""
        # Before the entries: a request that is answered after this counts in its entry, which has
        # to be there; in one that is made later, the generation is new.
        asked = {
            (key["tgid"], bytes(record["trace"])[:_TRACE_BYTES].hex())
            for key, record in self._drop_requests.items()
        }
        for each in self._entries(self._traces, processes, counted, is_at_rest, ()):
            fields = {name: each.record[name] for name in RawTrace._fields}
            _add(each.target.traces, each.trace, RawTrace(**fields))
        for each in self._entries(self._held_traces, processes, counted, is_at_rest, asked):
            fields = {name: each.record[name] for name in RawHeldTrace._fields}
            _add(each.target.held_traces, (each.kind, each.trace), RawHeldTrace(**fields))

    def _entries(
        self,
        table: Table,
        processes: Mapping[int, RawProcess],
        counted: Counter[str],
        is_at_rest: Callable[[int], bool],
        kept: Collection[tuple[int, str]],
    ) -> Iterator[_Entry]:
        items = list(table.items())
        counted[table.name] = len(items)
        taken: Counter[int] = Counter()
        for key, record in items:
            pid, process = key["tgid"], processes[key["tgid"]]
            trace = trace_id(key["trace_begin"], key["trace_end"])
            route = record["route"].split(b"\0", 1)[0].decode(errors="replace")
            rests = is_at_rest(key["generation"]) and (pid, trace) not in kept
            target = process.taken if rests else process
            yield _Entry(target, key.get("kind", 0), trace, {**record, "route": route})
            if rests:
                taken[pid] += table.delete(key)
        for pid, entries in taken.items():
            self._quotas.give_back(pid, Quota.TRACES, entries)


def _add(sums: dict[_Key, _Sums], key: _Key, more: _Sums) -> None:
    known = sums.get(key)
    sums[key] = more if known is None else known.plus(more)
