"""The report on the transactions of a live process that a person reads."""

from collections.abc import Iterable, Iterator, Mapping

from gilscope.model.gil import Tally
from gilscope.model.histogram import Histogram
from gilscope.model.transactions import (
    Library,
    Method,
    StmRecording,
    StmThread,
    StmTotals,
)
from gilscope.naming.transaction_words import LIBRARY_WORDS, METHOD_WORDS, limits_of
from gilscope.reports.coverage import coverage_words
from gilscope.reports.gil.text.holds import cost_words
from gilscope.reports.transactions.words import lost_words
from gilscope.text.ansi import Paint
from gilscope.text.histogram import bars
from gilscope.text.printable import printable
from gilscope.text.units import NS_PER_S, counted, percent, seconds, short_duration

__all__ = ["render"]

_MOST_REASONS = 20
_MOST_THREADS = 20


def render(recording: StmRecording, *, colour: bool = False) -> str:
    """Return the report; *colour* adds terminal colours."""
    lines = list(_lines(recording, Paint(on=colour)))
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _lines(recording: StmRecording, paint: Paint) -> Iterator[str]:
    observation = recording.observation
    process, totals = observation.process, observation.totals
    yield paint.bold(
        f"{printable(process.name)}, pid {process.pid}, {LIBRARY_WORDS[process.library]}"
    )
    end = ", until the process ended" if observation.ended and not observation.invalid else ""
    yield (
        f"{seconds(recording.duration_ns)}{end}. Seen {METHOD_WORDS[process.method]}, "
        f"in {printable(process.path)} (build {process.build_id[:12]})."
    )
    if observation.invalid:
        yield paint.red(f"It was not seen to the end: {observation.invalid}.")
    passed_ns = totals.at_ns - observation.since_ns
    yield from coverage_words(observation.observed_ns, passed_ns, is_whole=observation.is_whole)
    yield ""
    yield from _sums(totals, observation.observed_ns, paint)
    yield from _part("Waits, by kind", _waits(totals.waits or {}), paint)
    yield from _part("Collections of garbage", _collections(totals.collections or {}), paint)
    yield from _part("Made inevitable, by reason", _counts(totals.inevitable), paint)
    yield from _part("Restarts, by reason", _counts(totals.restarts or {}), paint)
    yield from _part("By thread", _threads(totals.threads, process.method), paint)
    took = "ran" if process.library is Library.RPYTHON else "took"
    yield from _histogram(f"How long committed transactions {took}", totals.committed, paint)
    yield from _histogram("How long aborted tries had run", totals.aborted, paint)
    yield from _part("What is not seen", (f"  {words}" for words in limits_of(process)), paint)
    yield ""
    yield from cost_words(observation.cost, recording.duration_ns)
    if not totals.lost_events:
        yield "No event was lost."
        return
    yield paint.bold("Not counted in full")
    for reason, count in totals.lost_events.items():
        number, _, words = lost_words(reason, count).partition(" ")
        yield f"{number:>10} {words}"


def _sums(totals: StmTotals, duration_ns: int, paint: Paint) -> Iterator[str]:
    rate = totals.commits * NS_PER_S / max(1, duration_ns)
    number = counted(totals.commits, "transaction")
    words = paint.bold(f"{number} {'was' if totals.commits == 1 else 'were'} committed")
    mean = ""
    if totals.committed is not None and totals.committed.count:
        mean_ns = totals.committed.sum_ns // totals.committed.count
        mean = f", in {short_duration(mean_ns)} on average"
    yield f"{words}, {rate:.0f} a second{mean}."
    if totals.aborts is not None:
        share = percent(totals.aborts / max(1, totals.aborts + totals.commits))
        words = f"{totals.aborts} tries were aborted, {share} of all"
        if totals.aborted is None:
            yield f"{paint.bold(words)}; what that has cost is not seen."
        else:
            yield paint.bold(f"{seconds(totals.aborted.sum_ns)} lost in aborts") + f": {words}."
    if totals.conflicts is not None:
        yield f"Conflicts that were logged: {totals.conflicts}."
    if totals.cancels:
        yield f"Transactions that the program itself cancelled: {totals.cancels}."


def _waits(waits: Mapping[str, Tally]) -> Iterator[str]:
    for kind, tally in sorted(waits.items(), key=lambda item: -item[1].ns):
        if tally.count:
            yield f"{seconds(tally.ns):>10} paused ({tally.count}x {kind})"


def _collections(collections: Mapping[str, Tally]) -> Iterator[str]:
    for generation, tally in collections.items():
        if tally.count:
            yield f"{seconds(tally.ns):>10} in {counted(tally.count, f'{generation} one')}"


def _counts(counts: Mapping[str, int]) -> Iterator[str]:
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    for reason, count in ranked[:_MOST_REASONS]:
        yield f"{count:>9}x {printable(reason)}"
    rest = ranked[_MOST_REASONS:]
    if rest:
        yield f"{sum(count for _, count in rest):>9}x {len(rest)} other reasons"


def _threads(threads: tuple[StmThread, ...], method: Method) -> Iterator[str]:
    for thread in threads[:_MOST_THREADS]:
        words = f"{thread.committed.count:>10} committed"
        if method.has_commit_times:
            words += f" {seconds(thread.committed.ns):>9}"
        if method.has_aborts:
            words += f"   {thread.aborted.count:>8} aborted"
        if method.has_abort_costs:
            words += f" {seconds(thread.aborted.ns):>9}"
        yield f"{words}   {thread.tid} {printable(thread.name)}"
    rest = threads[_MOST_THREADS:]
    if rest:
        commits = sum(thread.committed.count for thread in rest)
        yield f"{commits:>10} committed by {len(rest)} others"


def _histogram(heading: str, histogram: Histogram | None, paint: Paint) -> Iterator[str]:
    if histogram is not None:
        yield from _part(heading, bars(histogram), paint)


def _part(heading: str, lines: Iterable[str], paint: Paint) -> Iterator[str]:
    lines = tuple(lines)
    if lines:
        yield ""
        yield paint.bold(heading)
        yield from lines
