"""A live process with transactions as Markdown: what was lost, and its tables."""

from collections.abc import Iterator

from gilscope.model.transactions import StmObservation, StmRecording, StmTotals
from gilscope.naming.transaction_words import LIBRARY_WORDS, METHOD_WORDS, limits_of
from gilscope.reports.markdown_table import plain, table
from gilscope.reports.transactions.words import lost_words
from gilscope.text.units import counted, percent, seconds

__all__ = ["MOST_ROWS", "render"]

MOST_ROWS = 10
"""Of a table."""


def render(recording: StmRecording) -> str:
    """Return the answer to *recording*: what aborts cost, what threads wait for, and why."""
    return "\n".join(_lines(recording)) + "\n"


def _lines(recording: StmRecording) -> Iterator[str]:
    observation = recording.observation
    process, totals = observation.process, observation.totals
    yield f"### Transactions: {plain(_answer(totals))}"
    yield ""
    yield plain(
        f"{process.name}, pid {process.pid}, {LIBRARY_WORDS[process.library]}: "
        f"{counted(totals.commits, 'commit')} in {seconds(observation.observed_ns)} that were "
        f"seen {METHOD_WORDS[process.method]}."
    )
    waits = [
        (kind, seconds(tally.ns), str(tally.count))
        for kind, tally in (totals.waits or {}).items()
        if tally.count
    ]
    if waits:
        yield ""
        yield from table(("waited for", "time", "waits"), waits)
    reasons = [(reason, str(count)) for reason, count in totals.inevitable.items()]
    if reasons:
        yield ""
        yield from table(("made inevitable by", "times"), reasons[:MOST_ROWS])
    notes = list(_notes(observation))
    if notes:
        yield ""
        yield from (f"- {plain(note)}" for note in notes)


def _answer(totals: StmTotals) -> str:
    if totals.aborts is None:
        return "aborts are not seen"
    share = percent(totals.aborts / max(1, totals.aborts + totals.commits))
    tries = f"{counted(totals.aborts, 'aborted try', 'aborted tries')}, {share} of all"
    return tries if totals.aborted is None else f"{seconds(totals.aborted.sum_ns)} lost in {tries}"


def _notes(observation: StmObservation) -> Iterator[str]:
    if observation.invalid:
        yield f"It was not seen to the end: {observation.invalid}."
    yield from limits_of(observation.process)
    for reason, count in observation.totals.lost_events.items():
        yield f"{lost_words(reason, count)}."
