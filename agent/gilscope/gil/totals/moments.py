"""Chooses, out of what the probes have sent, the moment at which threads waited most."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from gilscope.gil.abi import SPAN_IS_HOLD
from gilscope.series.moments.worst_window import FAR_NS, MOMENT_NS, worst_within

__all__ = ["SentSpan", "of_moment", "worst_began_ns", "worth_keeping"]


class SentSpan(NamedTuple):
    """What is kept of a record of the probes' ring ``spans``."""

    cond: int
    began_ns: int
    ended_ns: int
    waiter: int
    holder: int
    tid: int
    kind: int


def worst_began_ns(
    records: Iterable[SentSpan], from_ns: int = 0, until_ns: int = FAR_NS
) -> int | None:
    """Return when the worst `MOMENT_NS` of *records* begin; None where nobody waited.

    What lies outside of the time from *from_ns* until *until_ns* does not count.
    """
    waits = ((one.began_ns, one.ended_ns) for one in records if one.kind != SPAN_IS_HOLD)
    return worst_within(waits, from_ns, until_ns)


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


def worth_keeping(records: Sequence[SentSpan], most: int, part_ns: int = FAR_NS) -> list[SentSpan]:
    """Return the worst moment of each *part_ns* of *records*, and at most *most* of the last."""
    parts: dict[int, list[SentSpan]] = {}
    for one in records:
        parts.setdefault(one.ended_ns // part_ns, []).append(one)
    kept: dict[int, SentSpan] = {}
    for part in parts.values():
        began_ns = worst_began_ns(part)
        if began_ns is not None:
            moment = of_moment(part, began_ns, began_ns + MOMENT_NS)
            kept.update((id(one), one) for one in moment)
    kept.update((id(one), one) for one in records[-most:])
    return list(kept.values())
