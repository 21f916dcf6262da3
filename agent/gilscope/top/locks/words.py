"""What the live view says of locks: in the row of a process without a GIL, and below the table."""

from collections.abc import Hashable, Iterator

from gilscope.model.locks import LockTotals
from gilscope.naming.lock_words import limits_of, short_words, stops_words
from gilscope.naming.places import SiteNames, place_of
from gilscope.series.locks.costliest import LockPlace, places_of
from gilscope.text.units import NS_PER_S, counted, percent
from gilscope.top.figures import a_second, seconds, share, tracing_cost
from gilscope.top.layout import Span, fit, left, right
from gilscope.top.locks.rates import LockRates, LockThreadRates

__all__ = ["cells", "explained", "in_short"]

_LOST_WIDTH = 7
_COST_WIDTH = 4
_GAP = "  "
_EARLIER = "≈"
_MOST_PLACES = 12
_MOST_IN_SHORT = 3
_LEAST_SHARE = 0.05
_WORDS_AT = 23
"""Behind two figures of ten cells."""


def cells(rates: LockRates, whose: LockRates | LockThreadRates, width: int) -> tuple[Span, ...]:
    """Return the figures of a process, or of its threads of one name, in *width* cells.

    In the columns of what is lost and of what tracing costs, with words in between.
    """
    mark = _EARLIER if rates.is_earlier else ""
    lost = share(whose.lost_ns, rates.observed_ns)
    room = width - (1 + _LOST_WIDTH) - (1 + _COST_WIDTH) - len(_GAP)
    words = f"{mark}{_rate(whose.waits, rates.observed_ns)} waits/s for locks"
    if isinstance(whose, LockRates):
        stopped_ns = sum(stops.ns for stops in whose.lately.stops)
        if stopped_ns:
            words += f", world stopped {percent(min(1.0, stopped_ns / max(1, rates.observed_ns)))}"
    if not rates.observed_ns:
        words = "not seen in this interval"
    return (
        Span(" " + right("" if lost is None else mark + a_second(lost), _LOST_WIDTH)),
        Span(_GAP + left(fit(words, room), room)),
        Span(" " + right(tracing_cost(rates.seen.cost if whose is rates else None), _COST_WIDTH)),
    )


def in_short(rates: LockRates, names: SiteNames) -> str:
    """Return what threads of a process with a GIL have lost to locks in the interval, and where."""
    if rates.seen.invalid:
        return f"not reported: {rates.seen.invalid}"
    lost = share(rates.lost_ns, rates.observed_ns)
    if not lost:
        return ""
    places = [
        f"{percent(place.wait_ns / rates.lost_ns)} {_place(place, names)}"
        for place in places_of(rates.lately)[:_MOST_IN_SHORT]
        if place.wait_ns > _LEAST_SHARE * rates.lost_ns
    ]
    mark = _EARLIER if rates.is_earlier else ""
    return f"{mark}{a_second(lost)} ms/s: {'; '.join(places)}"


def explained(rates: LockRates, names: SiteNames) -> Iterator[str]:
    """Yield lines about one process: what its threads wait for now and have waited for, and where.

    Then the stops of the world, and what is not seen.
    """
    seen, totals = rates.seen, rates.seen.totals
    if totals is None:
        return
    passed_ns = max(1, totals.at_ns - seen.since_ns)
    yield f"locks, seen {percent(min(1.0, seen.observed_ns / passed_ns))} of the time"
    yield f"{'ms/s':>10} {'total s':>10}"
    waits = [wait for one in totals.threads for wait in one.waits if wait.kind.is_contention]
    number = counted(sum(wait.waits for wait in waits), "wait")
    yield _line(rates, rates.lost_ns, totals.contended_ns, f"waiting for locks, {number}")
    lately = {_key(place): place.wait_ns for place in places_of(rates.lately)}
    places = places_of(totals)
    places = sorted(places, key=lambda place: (-lately.get(_key(place), 0), -place.wait_ns))
    for place in places[:_MOST_PLACES]:
        yield _line(rates, lately.get(_key(place), 0), place.wait_ns, f"  {_place(place, names)}")
        for end in place.other_ends():
            yield f"{'':{_WORDS_AT}}  {end.in_short} {names.innermost(end.stack)}"
    if totals.idle_ns:
        yield f"{'':>10} {seconds(totals.idle_ns):>10}{_GAP}idle: waits for something to do"
    yield from stops_words(*_stops(rates, totals))
    yield from limits_of(seen.process)


def _stops(rates: LockRates, totals: LockTotals) -> tuple[LockTotals, int]:
    """Return which stops to tell of, and in how much time they were seen."""
    if rates.lately.stops and rates.observed_ns:
        return rates.lately, rates.observed_ns
    return totals, rates.seen.observed_ns


def _line(rates: LockRates, lately_ns: int, total_ns: int, words: str) -> str:
    lost = share(lately_ns, rates.observed_ns)
    lately = "" if lost is None else a_second(lost)
    return f"{lately:>10} {seconds(total_ns):>10}{_GAP}{words}"


def _place(place: LockPlace, names: SiteNames) -> str:
    return f"{short_words(place.waits[0])} in {names.innermost(place.stack)}"


def _key(place: LockPlace) -> Hashable:
    return place.kind, place.waits[0].type, place_of(place.stack)


def _rate(count: int, observed_ns: int) -> str:
    return f"{count * NS_PER_S / max(1, observed_ns):.0f}"
