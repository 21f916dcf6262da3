"""Puts logs together that are read as one: those of a process and of its forks, or any."""

import re
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace
from functools import reduce

from gilscope.model.fieldwise import added
from gilscope.model.stm_log import Conflict, LogFile, StmLog
from gilscope.stm_log.markers import without_offset
from gilscope.stm_log.time_bins import add_up

__all__ = ["MERGES", "by_line", "groups_of", "merge"]

MERGES = ("forks", "all", "none")

_FORK = re.compile(r"(.+)\.fork\d+", re.DOTALL)


def groups_of(files: Sequence[LogFile], how: str) -> list[list[StmLog]]:
    """Return the logs of *files* in groups that belong together; *how* is one of `MERGES`.

    With ``forks`` these are ``NAME`` and all ``NAME.fork<PID>``. What follows a gap in a file is
    the log of another process, and is alone unless all are one.
    """
    groups: dict[Hashable, list[StmLog]] = {}
    for file in files:
        for number, log in enumerate(file.logs):
            groups.setdefault(_group(how, file.name, number), []).append(log)
    return list(groups.values())


def _group(how: str, name: str, number: int) -> Hashable:
    if how == "all":
        return ()
    if how == "none" or number:
        return (name, number)
    found = _FORK.fullmatch(name)
    return (found[1] if found else name, 0)


def merge(logs: Sequence[StmLog]) -> StmLog:
    """Return one log with the sums of all *logs*; a single one is returned as it is.

    Their times must be of the same clock, as those of one host since its start are. Raises
    ValueError where there are none.
    """
    if not logs:
        raise ValueError("there are no logs to merge")
    if len(logs) == 1:
        return logs[0]
    with_records = [log for log in logs if log.records] or logs
    first_ns = min(log.first_ns for log in with_records)
    last_ns = max(log.first_ns + log.span_ns for log in with_records)
    return replace(
        logs[0],
        name=_name(logs),
        layout=_joined(log.layout for log in logs),
        events_table=_joined(log.events_table for log in logs),
        semantics=_joined(log.semantics for log in logs),
        gap=None,
        records=sum(log.records for log in logs),
        counts=reduce(added, (log.counts for log in logs)),
        with_marker=reduce(added, (log.with_marker for log in logs)),
        threads=sum(log.threads for log in logs),
        first_ns=first_ns,
        last_ns=last_ns,
        span_ns=last_ns - first_ns,
        backward_timestamps=sum(log.backward_timestamps for log in logs),
        totals=replace(reduce(added, (log.totals for log in logs)), total_ns=last_ns - first_ns),
        conflicts=_merged([each for log in logs for each in log.conflicts]),
        commits_over_time=add_up([log.commits_over_time for log in with_records]),
        aborts_over_time=add_up([log.aborts_over_time for log in with_records]),
    )


def by_line(conflicts: Iterable[Conflict]) -> tuple[Conflict, ...]:
    """Return *conflicts* with those in one that differ in nothing but their bytecode offsets."""
    return _merged([replace(each, markers=without_offset(each.markers)) for each in conflicts])


def _name(logs: Sequence[StmLog]) -> str:
    forks = sum(_FORK.fullmatch(log.name) is not None for log in logs)
    others = len(logs) - 1
    is_family = forks >= others and len({log.name for log in logs}) == len(logs)
    kind = "fork" if is_family else "other log"
    return f"{logs[0].name} and {others} {kind}{'s' if others > 1 else ''}"


def _joined(names: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(names))


def _merged(conflicts: Sequence[Conflict]) -> tuple[Conflict, ...]:
    groups: dict[Hashable, list[Conflict]] = {}
    for each in conflicts:
        groups.setdefault((each.kind, each.markers, each.is_rest), []).append(each)
    merged = [_sum(group) for group in groups.values()]
    return tuple(
        sorted(merged, key=lambda each: (-each.lost_ns - each.paused_ns, each.kind, each.markers))
    )


def _sum(group: Sequence[Conflict]) -> Conflict:
    if len(group) == 1:
        return group[0]
    return replace(
        group[0],
        lost_ns=sum(each.lost_ns for each in group),
        paused_ns=sum(each.paused_ns for each in group),
        count=sum(each.count for each in group),
        over_time=add_up([each.over_time for each in group]),
    )
