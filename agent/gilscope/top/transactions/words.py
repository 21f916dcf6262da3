"""What the live view says of a process with transactions: in its row, and in the lower pane."""

from collections.abc import Iterator

from gilscope.model.transactions import StmTotals
from gilscope.naming.transaction_words import METHOD_WORDS, limits_of
from gilscope.text.printable import printable
from gilscope.text.units import NS_PER_S, counted, percent
from gilscope.top.figures import a_second, seconds, share, tracing_cost
from gilscope.top.layout import Span, fit, left, right
from gilscope.top.transactions.rates import StmRates, StmThreadRates

__all__ = ["cells", "explained"]

_LOST_WIDTH = 7
_COST_WIDTH = 4
_MOST_REASONS = 5
_GAP = "  "
_EARLIER = "≈"


def cells(rates: StmRates, whose: StmRates | StmThreadRates, width: int) -> tuple[Span, ...]:
    """Return the figures of a process, or of its threads of one name, in *width* cells.

    In the columns of what is lost and of what tracing costs, with words in between.
    """
    mark = _EARLIER if rates.is_earlier else ""
    lost = share(whose.lost_ns, rates.observed_ns)
    room = width - (1 + _LOST_WIDTH) - (1 + _COST_WIDTH) - len(_GAP)
    words = f"{mark}{_rate(whose.commits, rates.observed_ns)} commits/s"
    if whose.aborts is not None:
        words += f", {_aborted(whose.commits, whose.aborts)} aborted"
    if not rates.observed_ns:
        words = "not seen in this interval"
    return (
        Span(" " + right("" if lost is None else mark + a_second(lost), _LOST_WIDTH)),
        Span(_GAP + left(fit(words, room), room)),
        Span(" " + right(tracing_cost(rates.seen.cost if whose is rates else None), _COST_WIDTH)),
    )


def explained(rates: StmRates) -> Iterator[str]:
    """Yield lines about one process: what it loses now and has lost, why, and what is not seen."""
    seen = rates.seen
    totals, observed_ns = seen.totals, rates.observed_ns
    passed_ns = max(1, totals.at_ns - seen.since_ns)
    coverage = percent(min(1.0, seen.observed_ns / passed_ns))
    words = METHOD_WORDS[seen.process.method]
    yield f"{counted(totals.commits, 'commit')}, seen {words}, {coverage} of the time"
    if totals.aborted is not None:
        yield f"{'ms/s':>10} {'total s':>10}"
    yield from _lost("lost in aborts", rates.aborted_ns, _aborts(totals), observed_ns)
    yield from _lost("paused", rates.paused_ns, _waits(totals), observed_ns)
    waits = sorted((totals.waits or {}).items(), key=lambda item: -item[1].ns)
    kinds = [f"{kind} {seconds(each.ns)} s ({each.count}x)" for kind, each in waits if each.count]
    if kinds:
        yield f"paused in {'; '.join(kinds)}"
    if totals.inevitable:
        ranked = sorted(totals.inevitable.items(), key=lambda item: (-item[1], item[0]))
        reasons = "; ".join(f"{count}x {printable(why)}" for why, count in ranked[:_MOST_REASONS])
        yield f"inevitable by {reasons}"
    yield from limits_of(seen.process)


def _lost(
    what: str, lately_ns: int | None, total: tuple[int, str] | None, observed_ns: int
) -> Iterator[str]:
    if total is None:
        return
    lost, (total_ns, words) = share(lately_ns, observed_ns), total
    lately = "" if lost is None else a_second(lost)
    yield f"{lately:>10} {seconds(total_ns):>10}{_GAP}{what}, {words}"


def _aborts(totals: StmTotals) -> tuple[int, str] | None:
    if totals.aborts is None or totals.aborted is None:
        return None
    tries = counted(totals.aborts, "try", "tries")
    return totals.aborted.sum_ns, f"{tries}, {_aborted(totals.commits, totals.aborts)} of all"


def _waits(totals: StmTotals) -> tuple[int, str] | None:
    if totals.waits is None:
        return None
    waits = sum(tally.count for tally in totals.waits.values())
    return sum(tally.ns for tally in totals.waits.values()), counted(waits, "wait")


def _rate(count: int, observed_ns: int) -> str:
    return f"{count * NS_PER_S / max(1, observed_ns):.0f}"


def _aborted(commits: int, aborts: int) -> str:
    return percent(aborts / max(1, commits + aborts))
