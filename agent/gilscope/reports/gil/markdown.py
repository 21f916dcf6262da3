"""A recording as Markdown, for the summary of a job or a comment: the answer, and its tables."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from gilscope.model.gil import Recording
from gilscope.model.session import Session
from gilscope.naming.places import SiteNames
from gilscope.naming.python import python_of
from gilscope.reports.gil.releases import brief_words, keeping_words
from gilscope.reports.gil.text.holds import cost_line
from gilscope.reports.gil.text.screen import badness, verdict_lines
from gilscope.reports.gil.words import KIND_NAMES, base_words, lost_words, process_words
from gilscope.reports.markdown_table import plain, table
from gilscope.series.holders import losses_by_holder
from gilscope.text.ansi import Paint
from gilscope.text.units import counted, percent, seconds
from gilscope.verdict.base_rate import base_rate
from gilscope.verdict.change_words import change_words
from gilscope.verdict.role_losses import role_losses
from gilscope.verdict.verdict import verdict_of

__all__ = ["MOST_ROWS", "render"]

MOST_ROWS = 10
"""Of a table."""


def render(session: Session) -> str:
    """Return the answer to *session*: how bad it is, whose code keeps the GIL, who waits."""
    return "\n".join(_lines(session)) + "\n"


def _lines(session: Session) -> Iterator[str]:
    valid = [each for each in session.recordings if not each.observation.invalid]
    lost_ns = sum(each.observation.totals.wait_ns for each in valid)
    if valid:
        verdict, worst = max(((verdict_of(each), each) for each in valid), key=badness)
        lost_ns = sum(each.observation.totals.wait_ns for each in valid)
        first, *others = verdict_lines(
            verdict, worst, lost_ns, Paint(on=False), is_one=len(valid) == 1
        )
        yield f"### GIL: {plain(first)}"
        yield from ("", *map(plain, others)) if others else ()
        yield ""
    yield plain(_subject(session, lost_ns, valid))
    if lost_ns:
        yield from _tables(valid, lost_ns)
        yield from _changes(valid)
        yield from _releases(valid)
    notes = list(_notes(session, valid))
    if notes:
        yield ""
        yield from (f"- {plain(note)}" for note in notes)


def _subject(session: Session, lost_ns: int, valid: Sequence[Recording]) -> str:
    mode = f"{seconds(session.duration_ns)} in {session.mode} mode"
    waits = sum(thread.waits for each in valid for thread in each.observation.totals.threads)
    lost = f"{seconds(lost_ns)} lost waiting in {counted(waits, 'wait')}"
    if len(session.recordings) == 1:
        python = python_of(session.recordings[0].observation.process)
        base = base_rate(valid[0].observation.totals, valid[0].duration_ns) if valid else None
        of = "" if base is None or not waits else f", {base_words(base)}"
        whose = process_words(session.recordings[0])
        return f"{whose}, {python}: {mode}, {lost}{of}."
    number = len(session.recordings) + session.left_out
    return f"{counted(number, 'process', 'processes')} with a GIL: {mode}, {lost}."


def _tables(valid: Sequence[Recording], lost_ns: int) -> Iterator[str]:
    edges = chain.from_iterable(each.observation.totals.edges for each in valid)
    losses = losses_by_holder(edges, valid[0].application)
    if losses:
        names = SiteNames()
        places = ((names.owner(loss.frame, loss.costliest), loss.lost.ns) for loss in losses)
        yield from _table("whose code kept the GIL", places, lost_ns)
    roles = [
        (f"{each.role}, {KIND_NAMES[each.kind]}", each.whole.ns) for each in role_losses(valid)
    ]
    yield from _table("who waited", roles, lost_ns)
    if len(valid) > 1:
        processes = [(process_words(each), each.observation.totals.wait_ns) for each in valid]
        yield from _table("process", processes, lost_ns)


def _changes(valid: Sequence[Recording]) -> Iterator[str]:
    words = list(change_words(valid[0])) if len(valid) == 1 else []
    if words:
        yield ""
        yield "What a change would bring (estimates):"
        yield ""
        for change in words:
            yield f"- {plain(change.what)}:"
            yield f"  {plain(change.gain)},"
            yield f"  {change.assumption}."


def _releases(valid: Sequence[Recording]) -> Iterator[str]:
    words = [*brief_words(valid[0]), *keeping_words(valid[0])] if len(valid) == 1 else []
    if words:
        yield ""
        yield "Calls that should keep the GIL, or release it:"
        yield ""
        yield from (f"- {plain(each)}." for each in words)


def _table(head: str, losses: Iterable[tuple[str, int]], lost_ns: int) -> Iterator[str]:
    rows = [(name, seconds(ns), percent(ns / lost_ns)) for name, ns in losses if ns]
    rest = rows[MOST_ROWS:]
    yield ""
    yield from table((head, "time lost", "of all"), rows[:MOST_ROWS])
    if rest:
        yield f"| and {len(rest)} more | | |"


def _notes(session: Session, valid: Sequence[Recording]) -> Iterator[str]:
    """Yield what the figures do not say: what is missing, and what they have cost."""
    for each in session.recordings:
        if each.observation.invalid:
            yield f"Nothing is reported of {process_words(each)}: {each.observation.invalid}."
    for refusal in session.refusals:
        yield f"Not traced: {refusal.name}, pid {refusal.pid}: {refusal.reason}."
    lost: Counter[str] = Counter()
    for each in valid:
        lost.update(each.observation.totals.lost_events)
    for reason, count in lost.most_common():
        yield f"Not counted in full: {lost_words(reason, count)}."
    if len(valid) == 1:
        yield from cost_line(valid[0])
