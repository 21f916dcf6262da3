"""The report of several processes that a person reads: the sums first, then each by itself."""

from collections.abc import Iterator, Sequence
from itertools import chain

from gilscope.model.gil import Recording
from gilscope.model.session import Session
from gilscope.naming.places import SiteNames
from gilscope.reports.gil.text import report as one_process
from gilscope.reports.gil.text.whose_code import Whole, loss_lines
from gilscope.reports.gil.words import process_words
from gilscope.series.holders import losses_by_holder
from gilscope.text.ansi import Paint
from gilscope.text.printable import printable
from gilscope.text.units import counted, percent, seconds
from gilscope.verdict.estimates import about, are_shared_out

__all__ = ["render"]

_MOST_ROWS = 10
_MOST_NAMES = 8
_LINE = "-" * 78


def render(session: Session, *, colour: bool = False) -> str:
    """Return the report on the GILs of *session*; *colour* adds terminal colours."""
    lines = [line.rstrip() for line in _lines(session, Paint(on=colour))]
    parts = ["\n".join(lines) + "\n"]
    for recording in session.recordings:
        if _has_news(recording):
            parts += [f"\n{_LINE}\n", one_process.render(recording, colour=colour)]
    return "".join(parts)


def _has_news(recording: Recording) -> bool:
    seen = recording.observation
    return bool(seen.invalid or seen.totals.wait_ns or seen.totals.lost_events)


def _lines(session: Session, paint: Paint) -> Iterator[str]:
    recordings = session.recordings
    number = len(recordings) + session.left_out
    yield paint.bold(f"{counted(number, 'process', 'processes')} with a GIL")
    yield f"{seconds(session.duration_ns)} in {session.mode} mode."
    yield ""
    lost_ns = sum(recording.observation.totals.wait_ns for recording in recordings)
    losing = [recording for recording in recordings if recording.observation.totals.wait_ns]
    if not losing:
        yield "No thread of them had to wait for the GIL."
    else:
        waits = sum(t.waits for each in losing for t in each.observation.totals.threads)
        yield paint.bold(f"{seconds(lost_ns)} lost waiting for the GIL") + (
            f" in {counted(waits, 'wait')}, in {len(losing)} of them."
        )
        yield from _rows(losing, lost_ns)
        yield from _whose_code(losing, lost_ns, paint)
    quiet = [each for each in recordings if not _has_news(each)]
    if quiet and losing:
        yield ""
        yield f"Lost nothing: {_named(quiet)}."
    yield from _not_seen(session, paint)


def _rows(losing: Sequence[Recording], lost_ns: int) -> Iterator[str]:
    for recording in losing[:_MOST_ROWS]:
        wait_ns = recording.observation.totals.wait_ns
        end = ", which has ended" if recording.observation.ended else ""
        yield (
            f"{seconds(wait_ns):>10} {percent(wait_ns / lost_ns):>6}  {process_words(recording)}"
            f", seen for {seconds(recording.duration_ns)}{end}"
        )
    rest = losing[_MOST_ROWS:]
    if rest:
        rest_ns = sum(recording.observation.totals.wait_ns for recording in rest)
        more = counted(len(rest), "more process", "more processes")
        yield f"{seconds(rest_ns):>10} {percent(rest_ns / lost_ns):>6}  in {more}"


def _whose_code(losing: Sequence[Recording], lost_ns: int, paint: Paint) -> Iterator[str]:
    edges = chain.from_iterable(each.observation.totals.edges for each in losing)
    held_up = chain.from_iterable(each.observation.totals.held_up for each in losing)
    losses = losses_by_holder(edges, losing[0].application, held_up)
    if len(losing) > 1 and losses:
        yield ""
        yield paint.bold("Whose code kept the GIL, in all of them")
        sources = {place: line for each in losing for place, line in each.sources.items()}
        noted_ns = max(lost_ns, sum(loss.lost.ns for loss in losses))
        totals = [each.observation.totals for each in losing]
        whole = Whole(noted_ns, about(is_estimate=any(map(are_shared_out, totals))))
        yield from loss_lines(losses, whole, sources, SiteNames(), paint)


def _not_seen(session: Session, paint: Paint) -> Iterator[str]:
    if session.left_out:
        yield ""
        ended = counted(session.left_out, "process that has", "processes that have")
        yield paint.red(f"Left out, because there were too many: {ended} ended.")
    for refusal in session.refusals:
        yield ""
        yield paint.red(
            f"Not traced: {printable(refusal.name)}, pid {refusal.pid}: "
            f"{printable(refusal.reason)}."
        )


def _named(quiet: Sequence[Recording]) -> str:
    names = "; ".join(process_words(recording) for recording in quiet[:_MOST_NAMES])
    more = len(quiet) - _MOST_NAMES
    return f"{names}; and {more} more" if more > 0 else names
