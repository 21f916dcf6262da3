"""The landing page of ``serve``: which processes are traced, and in which state."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape

import gilscope
from gilscope.blame_account import Lately
from gilscope.model import Observation, ProcessTotals, Refusal
from gilscope.reports.agent_section import SelfPortrait, agent_section
from gilscope.reports.page_blame import blame_section
from gilscope.reports.page_stm import stm_section
from gilscope.reports.page_style import STYLE
from gilscope.reports.page_transactions import transactions_section
from gilscope.reports.units import percent, seconds, short_duration
from gilscope.stm.sums import FollowedLog
from gilscope.stm_live.model import StmObservation

__all__ = ["Transactions", "render"]

_LINKS = (
    f'<p class="quiet">Version {escape(gilscope.__version__)}. '
    'Figures for Prometheus: <a href="metrics">/metrics</a>. '
    'Health: <a href="healthz">/healthz</a>.</p>'
)

_HEADINGS = (
    ("process", ""),
    ("pid", "n"),
    ("Python", ""),
    ("state", ""),
    ("lost waiting", "n"),
    ("share", "n"),
    ("waits", "n"),
    ("waiting now", "n"),
    ("longest wait now", "n"),
    ("held", "n"),
    ("longest hold now", "n"),
    ("windows", "n"),
    ("overhead", "n"),
)


@dataclass(frozen=True, slots=True)
class Transactions:
    """What is known of software transactions."""

    live: Sequence[StmObservation] = ()
    logs: Sequence[FollowedLog] | None = None
    """None: none are followed, and nothing is said of them."""


_NO_TRANSACTIONS = Transactions()


def render(
    observations: Sequence[Observation],
    refusals: Iterable[Refusal],
    portrait: SelfPortrait | None = None,
    lately: Mapping[int, Lately] | None = None,
    transactions: Transactions = _NO_TRANSACTIONS,
) -> str:
    """Return the page as HTML that needs nothing else; *lately* is by pid."""
    refusals = tuple(refusals)
    ranked = sorted(observations, key=lambda seen: -_wait_ns(seen))
    return "\n".join(
        (
            "<!doctype html>",
            '<html lang="en"><head><meta charset="utf-8"><title>gilscope</title>',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<style>{STYLE}</style></head><body>",
            "<h1>gilscope</h1>",
            _LINKS,
            "<h2>Traced processes</h2>",
            _table(ranked) if ranked else "<p>None yet.</p>",
            *blame_section(ranked, lately or {}),
            *transactions_section(transactions.live),
            *(_refused(refusals) if refusals else ()),
            *(stm_section(transactions.logs) if transactions.logs is not None else ()),
            *(agent_section(portrait, ranked) if portrait is not None else ()),
            "</body></html>\n",
        )
    )


def _table(observations: Iterable[Observation]) -> str:
    head = "".join(f'<th class="{kind}">{name}</th>' for name, kind in _HEADINGS)
    rows = "\n".join(_row(observation) for observation in observations)
    return f'<table class="targets"><tr>{head}</tr>\n{rows}\n</table>'


def _row(observation: Observation) -> str:
    process = observation.process
    cells = (
        escape(process.name),
        str(process.pid),
        escape(process.python),
        _state(observation),
        *(_figures(observation) if not observation.invalid else ()),
    )
    named = zip(cells, _HEADINGS, strict=False)
    shown = "".join(
        f'<td class="{kind}" data-name="{name}">{cell}</td>' for cell, (name, kind) in named
    )
    return f"<tr>{shown}{'<td></td>' * (len(_HEADINGS) - len(cells))}</tr>"


def _figures(observation: Observation) -> Iterator[str]:
    totals = observation.totals
    traced_ns = max(1, totals.at_ns - observation.since_ns)
    waiting = [thread.waiting_ns for thread in totals.threads if thread.waiting_ns]
    wait_ns = _wait_ns(observation)
    yield seconds(wait_ns)
    yield percent(wait_ns / traced_ns)
    yield str(sum(thread.waits for thread in totals.threads))
    yield str(len(waiting))
    yield short_duration(max(waiting)) if waiting else ""
    held = [gil.held_ns for gil in totals.gils if gil.held_ns is not None]
    yield percent(sum(held) / traced_ns) if held else ""
    yield _longest_hold(totals)
    yield "" if totals.observed_ns is None else percent(totals.observed_ns / traced_ns)
    yield "" if totals.cost is None else percent(totals.cost.recent_ratio)


def _longest_hold(totals: ProcessTotals) -> str:
    longest_ns = max((gil.holds.holding_ns for gil in totals.gils if gil.holds), default=0)
    return short_duration(longest_ns) if longest_ns else ""


def _state(observation: Observation) -> str:
    if observation.invalid:
        return f'<span class="bad">not reported: {escape(observation.invalid)}</span>'
    if observation.ended:
        return '<span class="quiet">ended</span>'
    ways = {"sites": "traced at its call sites", "libc": "traced through libc"}
    return ways[observation.process.method]


def _refused(refusals: Iterable[Refusal]) -> tuple[str, str]:
    rows = "\n".join(
        f'<tr><td>{escape(refusal.name)}</td><td class="n">{refusal.pid}</td>'
        f"<td>{escape(refusal.reason)}<br>"
        f'<span class="quiet">{escape(refusal.remedy)}</span></td></tr>'
        for refusal in refusals
    )
    head = '<tr><th>process</th><th class="n">pid</th><th>why</th></tr>'
    return (
        "<h2>Found, but not traced</h2>",
        f"<table>{head}\n{rows}\n</table>",
    )


def _wait_ns(observation: Observation) -> int:
    return sum(thread.wait_ns for thread in observation.totals.threads)
