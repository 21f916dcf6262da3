"""What the machine-readable report says of one process; see ``record.schema.json``."""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from gilscope.model.gil import (
    ENDED_INTERPRETER,
    Edge,
    GilObservation,
    GilTotals,
    HeldUp,
    HolderSamples,
    HoldTotals,
    Process,
    ProcessTotals,
    Recording,
    SlowDrop,
    Tally,
    ThreadTotals,
)
from gilscope.model.histogram import Histogram, total
from gilscope.reports.gil.stack_table import StackTable
from gilscope.reports.gil.traces_json import traces_value
from gilscope.text.units import NS_PER_S
from gilscope.verdict.base_rate import base_rate
from gilscope.verdict.change_words import assumption
from gilscope.verdict.changes import changes_of

__all__ = ["buckets", "report"]


_OF_CHANGES = (
    *("holder", "saved_s", "saved_itself_s"),
    *("switch_interval_s", "mean_wait_s", "expected_wait_s", "least_wait_s", "most_wait_s"),
    "switches_ratio",
    *("role", "number", "enough"),
)


def report(recording: Recording) -> dict[str, Any]:
    """Return it as plain values: seconds as floats, null for what cannot be measured."""
    observation = recording.observation
    process, totals = observation.process, observation.totals
    is_valid = not observation.invalid
    has_stacks = is_valid and totals.has_stacks
    stacks = StackTable()
    edges = [_edge(edge, stacks) for edge in totals.edges] if has_stacks else None
    slow_drops = (
        [_slow_drop(one, stacks) for one in totals.slow_drops]
        if has_stacks and process.asks_holder
        else None
    )
    held_by = _held_by(totals.holder_samples, stacks) if has_stacks else None
    held_up = [_held_up(one, stacks) for one in totals.held_up] if has_stacks else None
    return {
        "duration_s": recording.duration_ns / NS_PER_S,
        "process": {
            "pid": process.pid,
            "name": process.name,
            "service": process.service,
            "runtime": process.runtime,
            "python": process.python,
            "build_id": process.build_id,
            "gil": True,
            "gil_needed_by": process.gil_needed_by,
            "gil_since": "start" if process.is_gil_asked_for else None,
            "method": process.method,
            "valid": is_valid,
            "invalid_reason": observation.invalid or None,
            "unknown": _unknown(observation),
        },
        "totals": _totals(observation, recording.duration_ns),
        "histograms": {
            "wait": buckets(total(_all_waits(totals.gils))) if is_valid else None,
            "hold": _buckets_of(hold.finished for hold in _holds(totals.gils)),
            "switch_latency": _buckets_of(hold.switch_latency for hold in _holds(totals.gils)),
            "drop_latency": buckets(total(gil.drop_latency for gil in totals.gils))
            if is_valid and process.asks_holder
            else None,
        },
        "threads": [_thread(thread, process) for thread in totals.threads],
        "interpreters": [_interpreter(gil, process, totals.check_interval) for gil in totals.gils],
        "edges": edges,
        "slow_drops": slow_drops,
        "held_by": held_by,
        "held_up": held_up,
        "brief_releases": _brief_releases(recording, stacks) if has_stacks else None,
        "traces": traces_value(totals.traces, stacks, sees_holds=totals.observed_ns is not None)
        if has_stacks
        else None,
        "changes": list(_changes(recording, stacks)) if is_valid else [],
        "stacks": stacks.stacks(),
        "frames": stacks.frames(),
    }


_HOLDS = ("hold_s", "holds", "observed_s", "hold", "switch_latency")
_NO_HOLDS = "holds are seen in full mode and in the windows of auto mode"
_NO_HOLDS_OF_LOCK = (
    "nothing shows the holds of this Python's lock, in any mode; held_s is how long it was held"
)
_NO_HOLDS_BY_LIBC = "the libc method sees no holds"
_CAUSES = ("forced_switches", "convoy_waits")
_ASKING = ("drop_requests", "drop_latency", "slow_drops", "switch_interval_s")
_STACKS = ("edges", "slow_drops", "held_by", "held_up", "samples", "sampled_s")


def _unknown(observation: GilObservation) -> dict[str, str]:
    """Return why figures are null: by their names, for all of the process."""
    process, totals = observation.process, observation.totals
    if observation.invalid:
        return {}  # all of them, by `invalid_reason`
    unknown: dict[str, str] = {}
    if totals.observed_ns is None:
        unknown |= dict.fromkeys(_HOLDS, _why_no_holds(process))
    if not process.knows_causes:
        unknown |= dict.fromkeys(_CAUSES, "what came before a wait cannot be told in this process")
    if not process.asks_holder:
        unknown |= dict.fromkeys(_ASKING, "threads that wait do not ask for the GIL in this Python")
    if process.wakes_in_vain:
        unknown |= {"forced_switches": "nobody forces a switch in this Python"}
    if not totals.has_stacks:
        unknown |= dict.fromkeys(_STACKS, "stacks were not read (--no-stacks)")
    return unknown


def _why_no_holds(process: Process) -> str:
    if process.method == "libc":
        return _NO_HOLDS_BY_LIBC
    return _NO_HOLDS if process.shows_holds else _NO_HOLDS_OF_LOCK


def buckets(histogram: Histogram) -> list[list[float | int | None]]:
    """Return the upper bound in seconds and the count of each bucket; the last bound is null."""
    return [
        [None if bound_ns is None else bound_ns / NS_PER_S, count]
        for bound_ns, count in histogram.buckets()
    ]


def _totals(observation: GilObservation, duration_ns: int) -> dict[str, Any]:
    threads, cost = observation.totals.threads, observation.totals.cost
    samples = observation.totals.holder_samples
    sums: dict[str, Any] = {
        "wait_s": sum(thread.wait_ns for thread in threads) / NS_PER_S,
        "waits": sum(thread.waits for thread in threads),
        **_acquires(observation.totals, duration_ns),
        **_held_by_threads(observation.totals),
        "held_s": _sum_s(gil.held_ns for gil in observation.totals.gils if gil.held_ns is not None),
        "sampled_s": None if samples is None else _seconds(samples.sampled_ns),
        "samples": None if samples is None else samples.samples,
        "observed_s": _seconds(observation.totals.observed_ns),
        "waits_unseen_s": None if cost is None else _seconds(cost.waits_unseen_ns),
        "wait_error": None if cost is None else cost.wait_error,
        "overhead_s": None if cost is None else _seconds(cost.overhead_ns),
        "throttled_s": _seconds(observation.totals.throttled_ns),
        "cpu_s": None if cost is None else _seconds(cost.used_ns),
        "forced_switches": sum(thread.forced_switches for thread in threads),
        "drop_requests": sum(thread.drop_requests for thread in threads),
        "convoy_waits": sum(thread.convoy_waits for thread in threads),
        **_failed_wakeups(sum((thread.failed_wakeups for thread in threads), Tally())),
    }
    if observation.invalid:
        sums = dict.fromkeys(sums)
    elif not observation.process.knows_causes:
        sums |= {"forced_switches": None, "convoy_waits": None}
    if not observation.process.asks_holder:
        sums |= {"drop_requests": None}
    if not observation.process.wakes_in_vain:
        sums |= _NO_FAILED_WAKEUPS
    else:
        sums |= {"forced_switches": None}
    return {**sums, "lost_events": dict(observation.totals.lost_events)}


_NO_FAILED_WAKEUPS: Final = {"failed_wakeups": None, "failed_wakeup_wait_s": None}


def _failed_wakeups(tally: Tally) -> dict[str, Any]:
    return {"failed_wakeups": tally.count, "failed_wakeup_wait_s": _seconds(tally.ns)}


def _acquires(totals: ProcessTotals, duration_ns: int) -> dict[str, Any]:
    base = base_rate(totals, duration_ns)
    return {
        "acquires": None if base is None else base.acquires,
        "acquires_estimated": None if base is None else base.is_estimate,
    }


def _held_by_threads(totals: ProcessTotals) -> dict[str, Any]:
    if totals.observed_ns is None:
        return {"hold_s": None, "holds": None}
    held = sum((thread.held for thread in totals.threads if thread.held is not None), Tally())
    return {"hold_s": held.ns / NS_PER_S, "holds": held.count}


def _thread(thread: ThreadTotals, process: Process) -> dict[str, Any]:
    return {
        "tid": thread.tid,
        "role": thread.role,
        "wait_s": thread.wait_ns / NS_PER_S,
        "waits": thread.waits,
        "hold_s": None if thread.held is None else _seconds(thread.held.ns),
        "holds": None if thread.held is None else thread.held.count,
        "forced_switches": thread.forced_switches if _sees_forced_switches(process) else None,
        **(_failed_wakeups(thread.failed_wakeups) if process.wakes_in_vain else _NO_FAILED_WAKEUPS),
        "kinds": {
            kind.value: {"wait_s": tally.ns / NS_PER_S, "waits": tally.count}
            for kind, tally in thread.lost.items()
            if tally.ns or tally.count
        },
    }


def _sees_forced_switches(process: Process) -> bool:
    return process.knows_causes and not process.wakes_in_vain


def _interpreter(gil: GilTotals, process: Process, check_interval: int | None) -> dict[str, Any]:
    return {
        "id": None if gil.gil.interpreter_id == ENDED_INTERPRETER else gil.gil.interpreter_id,
        "switch_interval_s": gil.interval_ns / NS_PER_S if process.asks_holder else None,
        "convoy_threshold_s": gil.interval_ns / NS_PER_S if process.knows_causes else None,
        "check_interval": check_interval,
        "waits": {
            cause.value: {
                "wait_s": histogram.sum_ns / NS_PER_S,
                "waits": histogram.count,
            }
            for cause, histogram in gil.waits.items()
        },
        "convoy_waits": gil.convoy_waits if process.knows_causes else None,
        "forced_switches": gil.forced_switches if _sees_forced_switches(process) else None,
        "drop_requests": gil.drop_requests if process.asks_holder else None,
        "hold_s": None if gil.holds is None else _seconds(gil.holds.held_ns),
        "holds": None if gil.holds is None else gil.holds.finished.count,
        "held_s": _seconds(gil.held_ns),
    }


def _edge(edge: Edge, stacks: StackTable) -> dict[str, Any]:
    return {
        "kind": edge.kind.value,
        "wait_s": edge.lost.ns / NS_PER_S,
        "waits": edge.lost.count,
        "waiter": stacks.number(edge.waiter),
        "holder": stacks.number(edge.holder),
    }


def _slow_drop(slow_drop: SlowDrop, stacks: StackTable) -> dict[str, Any]:
    return {
        "holder": stacks.number(slow_drop.holder),
        "drop_latency_s": slow_drop.drop_latency.ns / NS_PER_S,
        "requests": slow_drop.drop_latency.count,
        "longest_s": slow_drop.longest_ns / NS_PER_S,
        "in_flight_s": slow_drop.in_flight_ns / NS_PER_S,
    }


def _held_by(samples: HolderSamples | None, stacks: StackTable) -> list[dict[str, Any]]:
    holders = () if samples is None else samples.holders
    return [
        {
            "holder": stacks.number(held.holder),
            "state": held.state.state.value,
            "detail": held.state.detail or None,
            "native_calls": list(held.state.calls) or None,
            "held_s": held.held_ns / NS_PER_S,
        }
        for held in holders
    ]


def _brief_releases(recording: Recording, stacks: StackTable) -> list[dict[str, Any]] | None:
    if recording.brief_releases is None:
        return None
    return [
        {
            "waiter": stacks.number(each.waiter),
            "calls": each.waited.count,
            "away_s": each.away_ns / NS_PER_S,
            "wait_s": each.waited.ns / NS_PER_S,
        }
        for each in recording.brief_releases
    ]


def _changes(recording: Recording, stacks: StackTable) -> Iterator[dict[str, Any]]:
    changes = changes_of(recording)
    process, interval = changes.other_process, changes.shorter_interval
    threads = changes.fewer_threads
    if process is not None:
        yield _change("other_process", assumption(process)) | {
            "holder": stacks.number(process.costliest),
            "saved_s": process.others_ns / NS_PER_S,
            "saved_itself_s": process.own_ns / NS_PER_S,
        }
    if interval is not None:
        yield _change("switch_interval", assumption(interval)) | {
            "switch_interval_s": interval.shorter_ns / NS_PER_S,
            "mean_wait_s": interval.wait_ns / NS_PER_S,
            "expected_wait_s": interval.expected_ns / NS_PER_S,
            "least_wait_s": interval.least_ns / NS_PER_S,
            "most_wait_s": interval.most_ns / NS_PER_S,
            "switches_ratio": interval.switches,
        }
    if threads is not None:
        yield _change("fewer_threads", assumption(threads)) | {
            "role": threads.role,
            "number": threads.threads,
            "enough": threads.enough,
        }


def _change(kind: str, assumed: str) -> dict[str, Any]:
    """Return what each change has in common, and null for what only others have."""
    return {"change": kind, "assumption": assumed, **dict.fromkeys(_OF_CHANGES)}


def _held_up(held_up: HeldUp, stacks: StackTable) -> dict[str, Any]:
    return {
        "holder": stacks.number(held_up.holder),
        "kind": held_up.kind.value,
        "state": held_up.state.state.value,
        "detail": held_up.state.detail or None,
        "native_calls": list(held_up.state.calls) or None,
        "wait_s": held_up.ns / NS_PER_S,
    }


def _holds(gils: Iterable[GilTotals]) -> list[HoldTotals]:
    return [gil.holds for gil in gils if gil.holds is not None]


def _sum(values: Iterable[int]) -> int | None:
    # Of nothing: the mode cannot measure it.
    known = list(values)
    return sum(known) if known else None


def _sum_s(values_ns: Iterable[int]) -> float | None:
    return _seconds(_sum(values_ns))


def _seconds(ns: int | None) -> float | None:
    return None if ns is None else ns / NS_PER_S


def _buckets_of(histograms: Iterable[Histogram]) -> list[list[float | int | None]] | None:
    known = list(histograms)
    return buckets(total(known)) if known else None


def _all_waits(gils: Iterable[GilTotals]) -> Iterable[Histogram]:
    return (histogram for gil in gils for histogram in gil.waits.values())
