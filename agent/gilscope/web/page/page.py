"""The landing page of ``serve``: which processes are traced, and what they wait for lately."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Final

from markupsafe import Markup

import gilscope
from gilscope.model.application import EVERYBODYS, Application
from gilscope.model.gil import GilObservation, Refusal
from gilscope.model.locks import LockObservation
from gilscope.model.moment.capture import Capture
from gilscope.model.transactions import StmObservation
from gilscope.reports.html.document import digest
from gilscope.reports.html.markup import asset, joined, tag, text
from gilscope.series.lately import Lately
from gilscope.series.recent import Curve
from gilscope.stm_log.sums import FollowedLog
from gilscope.values import dataclass
from gilscope.web.page.agent import SelfPortrait, agent_section
from gilscope.web.page.blocking import blame_section
from gilscope.web.page.captures import captures_section
from gilscope.web.page.locks import locks_section
from gilscope.web.page.stm_log import stm_section
from gilscope.web.page.table import table
from gilscope.web.page.targets import targets_section
from gilscope.web.page.transactions import transactions_section

__all__ = [
    "EVERY_S",
    "POLICY",
    "Figures",
    "Locks",
    "Transactions",
    "document",
    "main_part",
    "render",
]

EVERY_S: Final = 5.0
"""How often the page refreshes."""
_HERE = Path(__file__)
_STYLE = asset(_HERE.with_suffix(".css"))
_SCRIPT = asset(_HERE.with_suffix(".js"))


# What traced processes call themselves is on this page, so that nothing but these two may act.
POLICY = (
    f"default-src 'none'; style-src '{digest(_STYLE)}'; script-src '{digest(_SCRIPT)}'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""The value of Content-Security-Policy to send the page with."""

_REFUSED = (("process", ""), ("pid", "n"), ("why", "s"))


@dataclass(frozen=True, slots=True)
class Transactions:
    """What is known of software transactions, and the last minutes of it by pid and by name."""

    live: Sequence[StmObservation] = ()
    logs: Sequence[FollowedLog] | None = None
    """None: none are followed, and nothing is said of them."""
    live_curves: Mapping[int, Curve] = field(default_factory=dict)
    log_curves: Mapping[str, Curve] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Locks:
    """What is known of locks, and the last minutes of it by pid."""

    live: Sequence[LockObservation] = ()
    curves: Mapping[int, Curve] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Figures:
    """What the page shows."""

    observations: Sequence[GilObservation] = ()
    refusals: Sequence[Refusal] = ()
    portrait: SelfPortrait | None = None
    lately: Mapping[int, Lately] = field(default_factory=dict)
    """By pid."""
    transactions: Transactions = Transactions()
    curves: Mapping[int, Curve] = field(default_factory=dict)
    """The last minutes of the processes in *observations*, by pid."""
    captures: Sequence[Capture] = ()
    """The last ones, the latest first."""
    locks: Locks = Locks()
    application: Application = EVERYBODYS
    """Whose code is to be told apart from libraries'."""


def main_part(figures: Figures) -> Markup:
    """Return what changes of the page."""
    return joined(_main_lines(figures), "\n")


def document(main: Markup, every_s: float = EVERY_S) -> Markup:
    """Return the whole page, which needs nothing else.

    It asks for another *main* at ``live`` every *every_s*, or for all of itself at least every
    second where scripts do not run.
    """
    lines = (
        Markup("<!doctype html>"),
        Markup('<html lang="en"><head><meta charset="utf-8"><title>gilscope</title>'),
        Markup('<meta name="viewport" content="width=device-width, initial-scale=1">'),
        Markup('<meta name="color-scheme" content="light dark">'),
        Markup('<meta name="referrer" content="no-referrer">'),
        Markup('<noscript><meta http-equiv="refresh" content="{}"></noscript>').format(
            max(1, round(every_s))
        ),
        Markup("<style>{}</style></head><body>").format(_STYLE),
        *_header(),
        # Nothing around it: the script compares it with what it fetches, node by node.
        tag("main", main, data_every_ms=round(every_s * 1000)),
        Markup("<script>{}</script></body></html>\n").format(_SCRIPT),
    )
    return joined(lines, "\n")


def render(figures: Figures) -> Markup:
    """Return the whole page."""
    return document(main_part(figures))


def _main_lines(figures: Figures) -> Iterator[Markup]:
    transactions = figures.transactions
    if figures.observations or not figures.locks.live:
        yield from targets_section(figures.observations, figures.curves)
    yield from captures_section(figures.captures)
    yield from blame_section(figures.observations, figures.lately, figures.application)
    yield from locks_section(figures.locks.live, figures.locks.curves)
    yield from transactions_section(transactions.live, transactions.live_curves)
    yield from _refused(figures.refusals)
    if transactions.logs is not None:
        yield from stm_section(transactions.logs, transactions.log_curves)
    if figures.portrait is not None:
        yield from agent_section(figures.portrait, figures.observations)


def _header() -> Iterator[Markup]:
    yield Markup("<header><h1>gilscope</h1>")
    yield tag("p", "Version ", text(gilscope.__version__))
    yield Markup('<p>For Prometheus: <a href="metrics">/metrics</a></p>')
    yield Markup('<p>Of the last 5 minutes: <a href="report">a report</a></p>')
    yield Markup('<p>Health: <a href="healthz">/healthz</a></p>')
    yield Markup('<p>Figures <span id="state">of the moment when the page was loaded</span></p>')
    yield Markup('<button id="pause" type="button" hidden>Pause</button></header>')
    yield Markup('<p id="problem" role="alert" hidden></p>')


def _refused(refusals: Sequence[Refusal]) -> Iterator[Markup]:
    if not refusals:
        return
    yield Markup("<h2>Found, but not traced</h2>")
    rows = [
        (
            text(refusal.name),
            str(refusal.pid),
            Markup('{}<br><span class="quiet">{}</span>').format(
                text(refusal.reason), text(refusal.remedy)
            ),
        )
        for refusal in refusals
    ]
    yield from table("refused", _REFUSED, rows)
