"""The figures of one JSON report that two of them are compared by."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any

from gilscope.model.application import EVERYBODYS, Application
from gilscope.model.stack import Frame, Stack, StackState
from gilscope.naming.application import application_frame
from gilscope.naming.paths import short_path
from gilscope.naming.places import IN_WORDS
from gilscope.values import dataclass
from gilscope.verdict.role_losses import STARTING

__all__ = ["Figures", "Unreadable", "figures_of"]

_VERSION = 2
_LIBRARIES = "(libraries alone)"
_LINE = re.compile(r":\d+\)$")
"""At the end of a role."""


class Unreadable(ValueError):
    """It is no report of `gilscope record --format json`, in words."""


@dataclass(frozen=True, slots=True)
class Figures:
    """What one recording comes to, so that longer and shorter ones can be compared.

    Of all processes together; None: the recording does not tell.
    """

    duration_s: float
    waiting: float
    """Threads that waited for a GIL at any moment, on average: seconds lost each second."""
    waiting_per_cpu_s: float | None = None
    """Seconds lost for each second of CPU time that the processes used themselves."""
    cores: float | None = None
    """That the processes used themselves at any moment, on average: whether the load was the
    same."""
    convoys_per_s: float | None = None
    wait_p50_s: float | None = None
    """Half of the waits took no longer: the upper bound of a bucket."""
    wait_p99_s: float | None = None
    slow_drops_per_s: float = 0.0
    """Drop requests that took 10 ms or longer."""
    longest_drop_s: float = 0.0
    places: Mapping[str, float] = field(default_factory=dict)
    """Threads kept waiting by the code at each place, ``function (file)``: lines move."""
    roles: Mapping[str, float] = field(default_factory=dict)
    """Threads of each role that waited, likewise."""


def figures_of(report: Any, application: Application = EVERYBODYS) -> Figures:  # noqa: ANN401 - any value of JSON
    """Return the figures of *report*, which has been read from JSON; raises Unreadable.

    Places are those of *application*.
    """
    if not isinstance(report, dict) or not isinstance(report.get("processes"), list):
        raise Unreadable("it is no report of gilscope record --format json")
    if report.get("version") != _VERSION:
        raise Unreadable(f"it has version {report.get('version')!a}, not {_VERSION}")
    try:
        return _figures(report, application)
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        raise Unreadable(f"it lacks something that a report has: {error!a}") from error


def _figures(report: Mapping[str, Any], application: Application) -> Figures:
    processes = [each for each in report["processes"] if each["process"]["valid"]]
    totals = [each["totals"] for each in processes]
    duration_s = float(report["duration_s"])
    if duration_s <= 0:
        raise Unreadable("it is about no time at all")
    lost_s = sum(float(each["wait_s"]) for each in totals)
    cpu_s = _sum(each.get("cpu_s") for each in totals)
    convoys = _sum(each["convoy_waits"] for each in totals)
    waits = _buckets(each["histograms"]["wait"] for each in processes)
    drops = [drop for each in processes for drop in each["slow_drops"] or ()]
    return Figures(
        duration_s=duration_s,
        waiting=lost_s / duration_s,
        waiting_per_cpu_s=lost_s / cpu_s if cpu_s else None,
        cores=None if cpu_s is None else cpu_s / duration_s,
        convoys_per_s=None if convoys is None else convoys / duration_s,
        wait_p50_s=_quantile(waits, 0.5),
        wait_p99_s=_quantile(waits, 0.99),
        slow_drops_per_s=sum(int(drop["requests"]) for drop in drops) / duration_s,
        longest_drop_s=max((float(drop["longest_s"]) for drop in drops), default=0.0),
        places=_places(processes, duration_s, application),
        roles=_roles(processes, duration_s),
    )


def _sum(values: Iterable[float | None]) -> float | None:
    known = list(values)
    return None if None in known else sum(value for value in known if value is not None)


def _buckets(histograms: Iterable[Sequence[Sequence[Any]]]) -> list[tuple[float, int]]:
    """Return upper bounds and counts of all *histograms* together; the last bound is infinite."""
    sums: Counter[float] = Counter()
    for histogram in histograms:
        for bound, count in histogram:
            sums[float("inf") if bound is None else float(bound)] += int(count)
    return sorted(sums.items())


def _quantile(buckets: Sequence[tuple[float, int]], share: float) -> float | None:
    """Return the middle of the bucket that has it, infinity beyond the last bound."""
    left = share * sum(count for _, count in buckets)
    if not left:
        return None
    lower = 0.0
    for bound, count in buckets:
        left -= count
        if left <= 0:
            return (lower + bound) / 2
        lower = bound
    return None


def _places(
    processes: Iterable[Mapping[str, Any]], duration_s: float, application: Application
) -> dict[str, float]:
    sums: Counter[str] = Counter()
    for process in processes:
        names: dict[int, str] = {}
        for edge in process["edges"]:
            holder = int(edge["holder"])
            if holder not in names:
                names[holder] = _place(_stack(process, holder), application)
            sums[names[holder]] += float(edge["wait_s"]) / duration_s  # type: ignore[assignment]  # a Counter counts anything
    return dict(sums.most_common())


def _roles(processes: Iterable[Mapping[str, Any]], duration_s: float) -> dict[str, float]:
    sums: Counter[str] = Counter()
    for process in processes:
        for thread in process["threads"]:
            if thread["wait_s"]:
                role = _LINE.sub(")", str(thread["role"] or STARTING))
                sums[role] += float(thread["wait_s"]) / duration_s  # type: ignore[assignment]  # as above
    return dict(sums.most_common())


def _stack(process: Mapping[str, Any], number: int) -> Stack:
    stack = process["stacks"][number]
    frames = [process["frames"][at] for at in stack["frames"]]
    return Stack(
        tuple(
            Frame(str(each["function"]), str(each["file"]), int(each["first_line"] or 0))
            for each in frames
        ),
        StackState(stack["state"]),
    )


def _place(stack: Stack, application: Application) -> str:
    frame = application_frame(stack, application)
    if frame is not None:
        return f"{frame.function} ({short_path(frame.file)})"
    return _LIBRARIES if stack.frames else f"({IN_WORDS[stack.state]})"
