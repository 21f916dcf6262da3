"""The part of the landing page about the transactions of live processes."""

from collections.abc import Iterator, Sequence
from html import escape

from gilscope.reports.units import percent, seconds
from gilscope.stm_live.model import StmObservation
from gilscope.stm_live.words import LIBRARY_WORDS, METHOD_WORDS

__all__ = ["transactions_section"]

_HEADINGS = (
    ("process", ""),
    ("pid", "n"),
    ("library", ""),
    ("state", ""),
    ("commits", "n"),
    ("aborts", "n"),
    ("aborted", "n"),
    ("lost in aborts", "n"),
)


def transactions_section(observations: Sequence[StmObservation]) -> tuple[str, ...]:
    """Return the heading and the table as HTML; nothing where there are no such processes."""
    if not observations:
        return ()
    head = "".join(f'<th class="{kind}">{name}</th>' for name, kind in _HEADINGS)
    rows = "\n".join(_row(observation) for observation in observations)
    return (
        "<h2>Processes with transactions</h2>",
        f'<table class="targets"><tr>{head}</tr>\n{rows}\n</table>',
    )


def _row(observation: StmObservation) -> str:
    cells = tuple(_cells(observation))
    named = zip(cells, _HEADINGS, strict=False)
    shown = "".join(
        f'<td class="{kind}" data-name="{name}">{cell}</td>' for cell, (name, kind) in named
    )
    return f"<tr>{shown}{'<td></td>' * (len(_HEADINGS) - len(cells))}</tr>"


def _cells(observation: StmObservation) -> Iterator[str]:
    process, totals = observation.process, observation.totals
    yield escape(process.name)
    yield str(process.pid)
    yield escape(LIBRARY_WORDS[process.library])
    if observation.invalid:
        yield f'<span class="bad">not reported: {escape(observation.invalid)}</span>'
        return
    if observation.ended:
        yield '<span class="quiet">ended</span>'
    else:
        yield f"traced {escape(METHOD_WORDS[process.method])}"
    yield str(totals.commits)
    yield "" if totals.aborts is None else str(totals.aborts)
    ends = totals.commits + (totals.aborts or 0)
    yield "" if totals.aborts is None else percent(totals.aborts / max(1, ends))
    yield "" if totals.aborted is None else seconds(totals.aborted.sum_ns)
