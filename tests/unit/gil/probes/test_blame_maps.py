"""What is read of the probes' tables while they change, and how these are kept from filling up."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest

from gilscope.bpf.map import Table
from gilscope.bpf.ringbuf import Ring
from gilscope.gil.abi import Quota
from gilscope.gil.probes import blame_maps as blame_tables_module
from gilscope.gil.probes.blame_maps import BlameTables
from gilscope.gil.probes.quotas import Quotas
from gilscope.gil.totals.raw import RawEdge, RawProcess, RawStack, Unanswered, Waiting
from gilscope.values import Record
from support.tracing.memory_table import MemoryTable

_SLOT = 3
_PID, _TID = 4711, 4712
_SERVING, _CRUNCHING = (1 << 63) + 1, (1 << 63) + 2
_SINCE_NS = 1_000_000
_S = 1_000_000_000
_MANY = 100
"""More entries than a table of 256 may have before they are taken over."""


class _Ring:
    def __init__(self) -> None:
        self.records: list[dict[str, Any]] = []

    def drain(self) -> Iterator[dict[str, Any]]:
        while self.records:
            yield self.records.pop(0)


class _Probes:
    """The tables that the programs write, and a clock that a test sets."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_ns = 100 * _S
        clock = SimpleNamespace(monotonic_ns=lambda: self.now_ns)
        monkeypatch.setattr(blame_tables_module, "time", clock)
        names = ["edges", "slow_drops", "traces", "drop_requests", "blames", "settings"]
        names += ["sent_stacks", "held_traces"]
        self.tables = {name: MemoryTable(name) for name in names}
        self.ring = _Ring()
        self.returned = MemoryTable("returned")
        quotas = Quotas(cast("Table", self.returned))
        quotas.begin(_PID, _SLOT)
        self.blame = BlameTables(
            cast("dict[str, Table]", self.tables),
            cast("Ring", self.ring),
            quotas,
            slow_drop_ns=10_000_000,
        )

    def given_back(self, quota: Quota) -> int:
        """Return how many entries the process has been given back."""
        (record,) = self.returned.records.values()
        return int(record["entries"][quota])

    @property
    def settings(self) -> dict[str, Any]:
        """What the programs are told."""
        (record,) = self.tables["settings"].records.values()
        return record

    def charge(self, waiter: int, ns: int, count: int = 1) -> None:
        """Add to an edge as the programs do."""
        generation = self.settings["generation"]
        key = {
            "waiter": waiter,
            "holder": _CRUNCHING,
            "tgid": _PID,
            "kind": 0,
            "generation": generation,
        }
        known = self.tables["edges"].get(key) or {"wait_ns": 0, "stretches": 0}
        more = {"wait_ns": known["wait_ns"] + ns, "stretches": known["stretches"] + count}
        self.tables["edges"].put(key, more)

    def note_slow_drop(self, ns: int) -> None:
        """Add to the one slow_drop as the programs do."""
        key = {"holder": _CRUNCHING, "tgid": _PID, "generation": self.settings["generation"]}
        zero = dict.fromkeys(("drop_latency_ns", "requests", "longest_ns"), 0)
        known = self.tables["slow_drops"].get(key) or zero
        more = {
            "drop_latency_ns": known["drop_latency_ns"] + ns,
            "requests": known["requests"] + 1,
            "longest_ns": max(known["longest_ns"], ns),
        }
        self.tables["slow_drops"].put(key, more)

    def trace(self, begin: int, ns: int) -> None:
        """Add to a trace as the programs do."""
        key = {
            "trace_begin": begin,
            "trace_end": 1,
            "tgid": _PID,
            "generation": self.settings["generation"],
        }
        known = self.tables["traces"].get(key) or {"wait_ns": 0, "waits": 0}
        more = {"wait_ns": known["wait_ns"] + ns, "waits": known["waits"] + 1, "longest_ns": ns}
        longest = ("ended_ns", "span", "holder", "cond", "cause")
        rest = dict.fromkeys((f"longest_{name}" for name in longest), 7)
        self.tables["traces"].put(key, {**more, **rest, "padding": 0, "route": b"/x\0\0"})

    def wait(self, **fields: Any) -> None:
        """Write what the one thread that waits notes of its wait."""
        record = {
            **dict.fromkeys(("version_begin", "version_end"), 7),
            "wait_started_ns": _SINCE_NS,
            "slice_began_ns": _SINCE_NS,
            "waiter": _SERVING,
            "holder": _CRUNCHING,
            **dict.fromkeys(("slice_holders", "slice_ns", "slice_stretches"), (0,) * 8),
        }
        self.tables["blames"].put({"value": _TID}, {**record, **fields})

    def read(self) -> RawProcess:
        """Return what is read of the process, whose one thread waits."""
        processes: dict[int, RawProcess] = defaultdict(RawProcess)
        other_starts = dict.fromkeys(("yield_started_ns", "forced_drop_ns"), 0)
        processes[_PID].threads[_TID] = {"wait_started_ns": _SINCE_NS, **other_starts}
        self.blame.read(processes, Counter(), self.now_ns)
        return processes[_PID]


@pytest.fixture
def probes(monkeypatch: pytest.MonkeyPatch) -> _Probes:
    """The probes' tables, which are empty."""
    return _Probes(monkeypatch)


def _sums(*processes: RawProcess) -> tuple[int, int]:
    """Return time and number of what has left the tables so far and of what is there at last."""
    edges = [edge for each in processes for edge in each.taken.edges.values()]
    edges += processes[-1].edges.values()
    return sum(edge.ns for edge in edges), sum(edge.count for edge in edges)


def test_probes_are_told_who_is_slow(probes: _Probes) -> None:
    """
    Before anything is read, the programs know the threshold and where to begin.
    """
    expected = {"slow_drop_ns": 10_000_000, "long_wait_ns": 0, "generation": 0, "stopped": 0}

    assert expected == probes.settings


def test_stacks_are_cut_to_their_depth(probes: _Probes) -> None:
    """
    What lies behind the outermost frame in the record is of another stack.
    """
    probes.ring.records.append(
        {
            "tgid": _PID,
            "id": _SERVING,
            "state": 1,
            "depth": 2,
            "codes": (64, 128, 999),
            "instructions": (1, 2, 999),
            "identities": (3, 4, 999),
        }
    )

    assert [RawStack(_PID, _SERVING, 1, ((64, 1), (128, 2)), (3, 4))] == list(
        probes.blame.new_stacks()
    )
    assert [] == list(probes.blame.new_stacks())


def test_few_entries_stay_where_they_are(probes: _Probes) -> None:
    """
    As long as there is room, the tables have all of it, and nothing is taken over.
    """
    for waiter in range(_MANY // 2):
        probes.charge(_SERVING + waiter, 10)
    first = probes.read()
    probes.now_ns += 10 * _S
    second = probes.read()

    assert 0 == probes.settings["generation"]
    assert first.edges == second.edges
    assert {} == first.taken.edges == second.taken.edges


def test_many_entries_are_taken_over_once(probes: _Probes) -> None:
    """
    They leave the table when no program adds to them any more; their sum is the same all the time.
    """
    for waiter in range(_MANY):
        probes.charge(_SERVING + waiter, 10)
        probes.note_slow_drop(10)
    reads = [probes.read()]
    sums = [_sums(*reads)]
    for _ in range(3):
        probes.charge(_SERVING, 1, 0)
        probes.now_ns += _S
        reads.append(probes.read())
        sums.append(_sums(*reads))
    slow_drops = [each.taken.slow_drops for each in reads]

    assert [(10 * _MANY + more, _MANY) for more in range(4)] == sums
    assert [0, _MANY, 0, 0] == [len(each.taken.edges) for each in reads]
    assert [{}, {_CRUNCHING: RawEdge(10 * _MANY, _MANY, 10)}, {}, {}] == slow_drops
    assert 1 == probes.settings["generation"]
    assert 1 == len(probes.tables["edges"].records)


def test_traces_are_taken_over_likewise(probes: _Probes) -> None:
    """
    One that waits on after that is in both, and its sum is the same all the time.
    """
    for number in range(_MANY):
        probes.trace(number, 10)
    reads = [probes.read()]
    probes.trace(5, 7)
    probes.now_ns += _S
    reads.append(probes.read())
    of_one = "05000000000000000100000000000000"

    assert [_MANY, 1] == [len(each.traces) for each in reads]
    assert [0, _MANY] == [len(each.taken.traces) for each in reads]
    assert (10, 7) == (reads[1].taken.traces[of_one].wait_ns, reads[1].traces[of_one].wait_ns)
    assert "/x" == reads[1].taken.traces[of_one].route
    assert _MANY == probes.given_back(Quota.TRACES)


def test_entries_that_may_still_change_stay(probes: _Probes) -> None:
    """
    A program that began before the change may add to an old entry for a while, and does not lose.
    """
    for waiter in range(_MANY):
        probes.charge(_SERVING + waiter, 10)
    reads = [probes.read()]
    probes.now_ns += _S - 1
    (key, old) = next(iter(probes.tables["edges"].records.items()))
    probes.tables["edges"].records[key] = {**old, "wait_ns": old["wait_ns"] + 5}
    reads.append(probes.read())
    probes.now_ns += 1
    reads.append(probes.read())

    assert [(10 * _MANY, _MANY), (10 * _MANY + 5, _MANY), (10 * _MANY + 5, _MANY)] == [
        _sums(*reads[: at + 1]) for at in range(3)
    ]
    assert [0, 0, _MANY] == [len(each.taken.edges) for each in reads]


def test_generations_do_not_follow_each_other_too_soon(probes: _Probes) -> None:
    """
    Before the next change, what the last one has left behind must have been taken over.
    """
    for at in range(4):
        for waiter in range(_MANY):
            probes.charge(_SERVING + waiter, 10)
        probes.read()
        probes.now_ns += _S

        assert 1 + at // 2 == probes.settings["generation"]


def test_both_generations_of_a_pair_are_one(probes: _Probes) -> None:
    """
    Until the older one leaves, the two entries add up.
    """
    for waiter in range(_MANY):
        probes.charge(_SERVING + waiter, 10)
    probes.read()
    probes.charge(_SERVING, 3)

    assert RawEdge(13, 2) == probes.read().edges[0, _SERVING, _CRUNCHING]


def test_wait_in_flight_has_what_is_in_no_edge(probes: _Probes) -> None:
    """
    Holders that had their part are listed up to the first place that is free.
    """
    probes.wait(
        slice_began_ns=3 * _SINCE_NS,
        slice_holders=(_SERVING, 0, _CRUNCHING, 0, 0, 0, 0, 0),
        slice_ns=(2 * _SINCE_NS, 0, 9, 0, 0, 0, 0, 0),
        slice_stretches=(1, 0, 9, 0, 0, 0, 0, 0),
    )
    slices = ((_SERVING, RawEdge(2 * _SINCE_NS, 1)),)

    assert {_TID: Waiting(_SERVING, _CRUNCHING, 3 * _SINCE_NS, slices)} == probes.read().waiting


@pytest.mark.parametrize(
    "change",
    [
        {"version_begin": 8, "version_end": 8, "slice_began_ns": 2 * _SINCE_NS},
        {"version_begin": 8, "version_end": 8, "wait_started_ns": 0},
    ],
    ids=["another holder", "has ended"],
)
def test_wait_that_changes_while_edges_are_read(probes: _Probes, change: Record) -> None:
    """
    Its time may be in the edges already, so it is left out for once.
    """
    probes.wait()
    probes.tables["edges"].when_read = lambda: probes.wait(**change)

    assert {} == probes.read().waiting


def test_wait_whose_notes_are_half_written(probes: _Probes) -> None:
    """
    A thread that was interrupted while it wrote them says so at each sample.
    """
    probes.wait(version_begin=8, version_end=7)

    assert {} == probes.read().waiting


def test_wait_that_is_another_one(probes: _Probes) -> None:
    """
    What is noted of a later wait of the thread says nothing about the one that its record shows.
    """
    probes.wait(wait_started_ns=2 * _SINCE_NS)

    assert {} == probes.read().waiting


def test_wait_of_which_nothing_is_noted(probes: _Probes) -> None:
    """
    Where the table of notes has no room for a thread, its wait in flight is nobody's yet.
    """
    assert {} == probes.read().waiting


def test_stacks_that_are_to_be_sent_again(probes: _Probes) -> None:
    """
    Those of this process leave the list of sent ones, and no others.
    """
    sent = [(_PID, _SERVING), (_PID, _CRUNCHING), (_PID + 1, _SERVING)]
    for pid, stack in sent:
        probes.tables["sent_stacks"].put({"id": stack, "tgid": pid}, {"value": 1})
    probes.blame.send_again(_PID, {_SERVING})

    left = [dict(key) for key in probes.tables["sent_stacks"].records]
    assert sent[1:] == [(key["tgid"], key["id"]) for key in left]


def test_process_may_have_again_what_has_left_the_tables(probes: _Probes) -> None:
    """
    Edges that were taken over, and stacks that were read; nothing of what stays.
    """
    for waiter in range(_MANY):
        probes.charge(16 + waiter, 1)
    probes.read()
    probes.now_ns += 2 * _S
    kept = (probes.given_back(Quota.EDGES), probes.given_back(Quota.STACKS))
    probes.read()

    assert (0, 0) == kept
    assert _MANY == probes.given_back(Quota.EDGES)
    assert 0 == probes.given_back(Quota.CULPRITS)


def test_requests_that_are_slow_to_be_answered_are_read(probes: _Probes) -> None:
    """
    From the threshold on; a younger one is none that anybody would ask about.
    """
    for cond, age_ns in ((1, 9_999_999), (2, 10_000_000)):
        probes.tables["drop_requests"].put(
            {"cond": cond, "tgid": _PID},
            {
                "asked_ns": probes.now_ns - age_ns,
                "holder": _CRUNCHING,
                "is_left_out": 0,
                "trace": bytes(24),
            },
        )

    assert [Unanswered(_CRUNCHING, probes.now_ns - 10_000_000)] == probes.read().unanswered
