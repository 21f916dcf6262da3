"""Chooses, out of what the probes have sent, the moment at which threads waited most."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from gilscope.gil.abi import SPAN_IS_HOLD, SPAN_SECOND_SHIFT
from gilscope.gil.totals.worst_window import worst_window
from gilscope.model.gil import Record

__all__ = [
    "MOMENT_NS",
    "Seconds",
    "SentSpan",
    "of_moment",
    "worst_began_ns",
    "worth_keeping",
]

MOMENT_NS = 200_000_000
"""Forty switch intervals: a convoy can be seen, and each turn of it too."""
_NEARLY = 0.98
"""Processors that count at the same time let one span too few pass."""


class SentSpan(NamedTuple):
    """What is kept of a record of the probes' ring ``spans``."""

    cond: int
    began_ns: int
    ended_ns: int
    waiter: int
    holder: int
    tid: int
    kind: int


def worst_began_ns(records: Iterable[SentSpan]) -> int | None:
    """Return when the worst `MOMENT_NS` of *records* begin; None where nobody waited."""
    waits = [(one.began_ns, one.ended_ns) for one in records if one.kind != SPAN_IS_HOLD]
    return worst_window(waits, MOMENT_NS) if waits else None


def of_moment(records: Sequence[SentSpan], began_ns: int, ended_ns: int) -> list[SentSpan]:
    """Return those of *records* that reach into a moment, and what says who held a lock before.

    That is the last wait for each lock that ended before.
    """
    last: dict[int, SentSpan] = {}
    for one in records:
        if one.kind != SPAN_IS_HOLD and one.ended_ns < began_ns:
            known = last.get(one.cond)
            if known is None or known.ended_ns < one.ended_ns:
                last[one.cond] = one
    inside = (one for one in records if one.ended_ns >= began_ns and one.began_ns < ended_ns)
    return [*last.values(), *inside]


def worth_keeping(records: Sequence[SentSpan], most: int) -> list[SentSpan]:
    """Return the worst moment of *records*, and at most *most* of the last of them."""
    began_ns = worst_began_ns(records)
    if began_ns is None:
        return list(records[-most:])
    moment = of_moment(records, began_ns, began_ns + MOMENT_NS)
    known = {id(one) for one in moment}
    return [*moment, *(one for one in records[-most:] if id(one) not in known)]


class Seconds:
    """When spans were not sent, because there had been as many in that second as are sent."""

    def __init__(self, most: int) -> None:
        """At most *most* are sent in a second."""
        self._enough = int(most * _NEARLY)
        self._spans: dict[int, tuple[int, int]] = {}

    def add(self, record: Record) -> None:
        """Note that *record* was sent."""
        second = record["ended_ns"] >> SPAN_SECOND_SHIFT
        number, last_ns = self._spans.get(second, (0, 0))
        self._spans[second] = number + 1, max(last_ns, record["ended_ns"])

    def unseen(self, began_ns: int, ended_ns: int) -> tuple[tuple[int, int], ...]:
        """Return what of that time nothing is known of, as (from, to)."""
        return tuple(
            (max(began_ns, last_ns), min(ended_ns, (second + 1) << SPAN_SECOND_SHIFT))
            for second, (number, last_ns) in _of(self._spans, began_ns, ended_ns)
            if number >= self._enough and last_ns < ended_ns
        )


def _of(
    spans: Mapping[int, tuple[int, int]], began_ns: int, ended_ns: int
) -> Iterable[tuple[int, tuple[int, int]]]:
    for second in range(began_ns >> SPAN_SECOND_SHIFT, (ended_ns >> SPAN_SECOND_SHIFT) + 1):
        if second in spans:
            yield second, spans[second]
