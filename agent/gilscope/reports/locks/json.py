"""The machine-readable report on the locks of a live process, version 1."""

from typing import Any

from gilscope.model.locks import (
    LockObservation,
    LockRecording,
    LockThread,
    LockTotals,
    LockWait,
    WorldStops,
)
from gilscope.model.stack import Stack
from gilscope.text.units import NS_PER_S

__all__ = ["report"]


def report(recording: LockRecording) -> dict[str, Any]:
    """Return the report as plain values: seconds as floats, null for what is not known."""
    observation = recording.observation
    process, totals = observation.process, observation.totals
    return {
        "version": 1,
        "pid": process.pid,
        "name": process.name,
        "python": process.python,
        "free_threaded": process.python.endswith("t"),
        "build_id": process.build_id,
        "valid": not observation.invalid,
        "invalid_reason": observation.invalid or None,
        "duration_s": recording.duration_ns / NS_PER_S,
        "observed_s": None if totals is None else observation.observed_ns / NS_PER_S,
        **_totals(observation, totals),
        "world_stops": [] if totals is None else [_stops(stops) for stops in totals.stops],
        "threads": [] if totals is None else [_thread(thread) for thread in totals.threads],
    }


def _totals(observation: LockObservation, totals: LockTotals | None) -> dict[str, Any]:
    cost = observation.cost
    return {
        "wait_s": None if totals is None else totals.contended_ns / NS_PER_S,
        "idle_s": None if totals is None else totals.idle_ns / NS_PER_S,
        "traps": None if totals is None else totals.traps,
        "overhead_s": None if cost is None else cost.overhead_ns / NS_PER_S,
        "overhead_ratio": None if cost is None else cost.recent_ratio,
        "lost_events": {} if totals is None else dict(totals.lost_events),
    }


def _stops(stops: WorldStops) -> dict[str, Any]:
    return {
        "cause": stops.cause.value,
        "stops": stops.stops,
        "stopping_s": stops.stopping_ns / NS_PER_S,
        "standing_s": stops.standing_ns / NS_PER_S,
        "longest_s": stops.longest_ns / NS_PER_S,
        "stack_state": stops.stack.state.value,
        "frames": _frames(stops.stack),
    }


def _thread(thread: LockThread) -> dict[str, Any]:
    return {
        "tid": thread.tid,
        "name": thread.name,
        "wait_s": thread.contended_ns / NS_PER_S,
        "idle_s": thread.idle_ns / NS_PER_S,
        "waits": [_wait(wait) for wait in thread.waits],
    }


def _wait(wait: LockWait) -> dict[str, Any]:
    return {
        "kind": wait.kind.value,
        "type": wait.type,
        "wait_s": wait.wait_ns / NS_PER_S,
        "slept_s": wait.slept_ns / NS_PER_S,
        "waits": wait.waits,
        "sleeps": wait.sleeps,
        "longest_s": wait.longest_ns / NS_PER_S,
        "stack_state": wait.stack.state.value,
        "frames": _frames(wait.stack),
        "held_by": _frames(wait.held) if wait.held.is_known else None,
        "released_by": _frames(wait.released) if wait.released.is_known else None,
    }


def _frames(stack: Stack) -> list[dict[str, Any]]:
    return [
        {"function": frame.function, "file": frame.file, "line": frame.line}
        for frame in stack.frames
    ]
