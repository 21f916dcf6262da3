"""Reads who kept whom waiting out of the probes' tables, and keeps these from filling up."""

import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TypeVar

from gilscope.bpf.map import Table
from gilscope.bpf.ringbuf import Ring
from gilscope.gil.abi import Quota
from gilscope.gil.probes.quotas import Quotas
from gilscope.gil.probes.trace_tables import TraceTables
from gilscope.gil.totals.process_totals import waiting_since_ns
from gilscope.gil.totals.raw import RawEdge, RawProcess, RawStack, Unanswered, Waiting
from gilscope.values import Record

__all__ = ["BlameTables"]

_MOST_ENTRIES = 1024
"""From this number on the entries of a table are taken over, and leave it."""
_AT_REST_NS = 1_000_000_000
"""How long after a change of generation a program may still write to the old one."""
_GENERATIONS = 1 << 16

_TAKEN = ("edges", "slow_drops", "traces", "held_traces")

_Key = TypeVar("_Key")


class BlameTables:
    """The tables and the ring of everything that concerns stacks."""

    def __init__(
        self,
        tables: Mapping[str, Table],
        stacks: Ring,
        quotas: Quotas,
        *,
        slow_drop_ns: int,
        long_wait_ns: int = 0,
    ) -> None:
        """Let requests that wait for *slow_drop_ns* or longer be attributed to the holder.

        A wait that lasts *long_wait_ns* is told of while it lasts; 0: none is. What leaves the
        tables and the ring is given back to *quotas*.
        """
        self._edges = tables["edges"]
        self._slow_drops = tables["slow_drops"]
        self._traces = TraceTables(tables, quotas)
        self._drop_requests = tables["drop_requests"]
        self._blames = tables["blames"]
        self._settings = tables["settings"]
        self._stacks = stacks
        self._quotas = quotas
        self._slow_drop_ns = slow_drop_ns
        self._long_wait_ns = long_wait_ns
        self._sent_stacks = tables["sent_stacks"]
        self._most_entries = min(_MOST_ENTRIES, self._edges.entries // 4)
        self._generation = 0
        self._changed_ns = 0
        self._stopped = False
        self._write_settings()

    def stop(self) -> None:
        """Let no program count anything any more, that of no other table either."""
        self._stopped = True
        self._write_settings()

    def new_stacks(self) -> Iterator[RawStack]:
        """Take and yield the stacks that the probes have met for the first time."""
        for record in self._stacks.drain():
            self._quotas.give_back(record["tgid"], Quota.STACKS, 1)
            depth = record["depth"]
            codes, instructions = record["codes"][:depth], record["instructions"][:depth]
            yield RawStack(
                pid=record["tgid"],
                id=record["id"],
                state=record["state"],
                places=tuple(zip(codes, instructions, strict=True)),
                identities=record["identities"][:depth],
            )

    def waiting(self, processes: Mapping[int, RawProcess]) -> dict[int, Record]:
        """Return what the probes note of the threads that wait now, by tid."""
        found: dict[int, Record] = {}
        for process in processes.values():
            for tid, thread in process.threads.items():
                since_ns = waiting_since_ns(thread)
                record = self._blames.get({"value": tid}) if since_ns else None
                if record is not None and record["wait_started_ns"] == since_ns:
                    found[tid] = record
        return found

    def read(self, processes: dict[int, RawProcess], counted: Counter[str], now_ns: int) -> None:
        """Fill in the edges and slow drops of *processes*, whose threads were read at *now_ns*.

        What leaves the tables is handed over in `RawProcess.taken`, once.
        """
        before = self.waiting(processes)
        self._read_edges(processes, counted)
        self._read_slow_drops(processes, counted)
        self._traces.read(processes, counted, self._is_at_rest)
        # After those: what is answered meanwhile is in neither this time, and never in both.
        self._read_unanswered(processes, now_ns)
        after = self.waiting(processes)
        for process in processes.values():
            for tid in process.threads:
                # What has changed meanwhile may be in the edges already.
                if tid in before and _is_same(before[tid], after.get(tid)):
                    process.waiting[tid] = _waiting(after[tid])
        self._change_generation(counted)

    def send_again(self, pid: int, stack_ids: Collection[int]) -> None:
        """Have the probes send these stacks again when they meet them."""
        keys = [key for key, _ in self._sent_stacks.items()]
        for key in keys:
            if key["tgid"] == pid and key["id"] in stack_ids:
                self._sent_stacks.delete(key)

    def _read_edges(self, processes: dict[int, RawProcess], counted: Counter[str]) -> None:
        taken: Counter[int] = Counter()
        for key, record in self._items(self._edges, counted):
            process = processes[key["tgid"]]
            is_at_rest = self._is_at_rest(key["generation"])
            edges = process.taken.edges if is_at_rest else process.edges
            edge = RawEdge(record["wait_ns"], record["stretches"])
            _add(edges, (key["kind"], key["waiter"], key["holder"]), edge)
            if is_at_rest:
                taken[key["tgid"]] += self._edges.delete(key)
        self._give_back(Quota.EDGES, taken)

    def _read_slow_drops(self, processes: dict[int, RawProcess], counted: Counter[str]) -> None:
        taken: Counter[int] = Counter()
        for key, record in self._items(self._slow_drops, counted):
            process = processes[key["tgid"]]
            is_at_rest = self._is_at_rest(key["generation"])
            slow_drops = process.taken.slow_drops if is_at_rest else process.slow_drops
            slow_drop = RawEdge(record["drop_latency_ns"], record["requests"], record["longest_ns"])
            _add(slow_drops, key["holder"], slow_drop)
            if is_at_rest:
                taken[key["tgid"]] += self._slow_drops.delete(key)
        self._give_back(Quota.CULPRITS, taken)

    def _read_unanswered(self, processes: dict[int, RawProcess], now_ns: int) -> None:
        for key, record in self._drop_requests.items():
            if now_ns - record["asked_ns"] >= self._slow_drop_ns and not record["is_left_out"]:
                request = Unanswered(record["holder"], record["asked_ns"])
                processes[key["tgid"]].unanswered.append(request)

    def _give_back(self, quota: Quota, taken: Mapping[int, int]) -> None:
        for pid, entries in taken.items():
            self._quotas.give_back(pid, quota, entries)

    def _items(self, table: Table, counted: Counter[str]) -> Sequence[tuple[Record, Record]]:
        items = list(table.items())
        counted[table.name] = len(items)
        return items

    def _is_at_rest(self, generation: int) -> bool:
        is_old = generation != self._generation
        return is_old and time.monotonic_ns() - self._changed_ns >= _AT_REST_NS

    def _change_generation(self, counted: Mapping[str, int]) -> None:
        is_due = time.monotonic_ns() - self._changed_ns >= 2 * _AT_REST_NS
        if is_due and max(counted[name] for name in _TAKEN) > self._most_entries:
            self._generation = (self._generation + 1) % _GENERATIONS
            self._write_settings()
            self._changed_ns = time.monotonic_ns()

    def _write_settings(self) -> None:
        self._settings.put(
            {"value": 0},
            {
                "slow_drop_ns": self._slow_drop_ns,
                "long_wait_ns": self._long_wait_ns,
                "generation": self._generation,
                "stopped": int(self._stopped),
            },
        )


def _add(edges: dict[_Key, RawEdge], key: _Key, edge: RawEdge) -> None:
    known = edges.get(key)
    edges[key] = edge if known is None else known + edge


def _is_same(before: Record, after: Record | None) -> bool:
    return (
        after is not None
        and before["version_begin"] == after["version_begin"] == after["version_end"]
    )


def _waiting(record: Record) -> Waiting:
    kept = zip(record["slice_holders"], record["slice_ns"], record["slice_stretches"], strict=True)
    slices = []
    for holder, ns, stretches in kept:
        if not holder:
            break
        slices.append((holder, RawEdge(ns, stretches)))
    return Waiting(record["waiter"], record["holder"], record["slice_began_ns"], tuple(slices))
