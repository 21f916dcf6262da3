"""The landing page of ``serve``: which processes are traced, and what they wait for lately."""

import base64
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import gilscope
from gilscope.blame_account import Lately
from gilscope.history import Curve
from gilscope.model import Observation, Refusal
from gilscope.reports.agent_section import SelfPortrait, agent_section
from gilscope.reports.html_parts.markup import text
from gilscope.reports.page_blame import blame_section
from gilscope.reports.page_stm import stm_section
from gilscope.reports.page_table import table
from gilscope.reports.page_targets import targets_section
from gilscope.reports.page_transactions import transactions_section
from gilscope.stm.sums import FollowedLog
from gilscope.stm_live.model import StmObservation

__all__ = ["EVERY_S", "POLICY", "Figures", "Transactions", "document", "main_part", "render"]

EVERY_S: Final = 5.0
"""So often the page brings itself up to date."""
_HERE = Path(__file__)
_STYLE = _HERE.with_suffix(".css").read_text(encoding="utf-8")
_SCRIPT = _HERE.with_suffix(".js").read_text(encoding="utf-8")


def _digest(content: str) -> str:
    digest = hashlib.sha256(content.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


# What traced processes call themselves is on this page, so that nothing but these two may act.
POLICY = (
    f"default-src 'none'; style-src {_digest(_STYLE)}; script-src {_digest(_SCRIPT)}; "
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
class Figures:
    """What the page shows."""

    observations: Sequence[Observation] = ()
    refusals: Sequence[Refusal] = ()
    portrait: SelfPortrait | None = None
    lately: Mapping[int, Lately] = field(default_factory=dict)
    """By pid."""
    transactions: Transactions = Transactions()
    curves: Mapping[int, Curve] = field(default_factory=dict)
    """The last minutes of the processes in *observations*, by pid."""


def main_part(figures: Figures) -> str:
    """Return what changes of the page, as HTML."""
    return "\n".join(_main_lines(figures))


def document(main: str, every_s: float = EVERY_S) -> str:
    """Return the whole page, which needs nothing else.

    It asks for another *main* at ``live`` every *every_s*, or for all of itself at least every
    second where scripts do not run.
    """
    return "\n".join(
        (
            "<!doctype html>",
            '<html lang="en"><head><meta charset="utf-8"><title>gilscope</title>',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            '<meta name="referrer" content="no-referrer">',
            f'<noscript><meta http-equiv="refresh" content="{max(1, round(every_s))}"></noscript>',
            f"<style>{_STYLE}</style></head><body>",
            *_header(),
            # Nothing around it: the script compares it with what it fetches, node by node.
            f'<main data-every-ms="{round(every_s * 1000)}">{main}</main>',
            f"<script>{_SCRIPT}</script></body></html>\n",
        )
    )


def render(figures: Figures) -> str:
    """Return the whole page."""
    return document(main_part(figures))


def _main_lines(figures: Figures) -> Iterator[str]:
    transactions = figures.transactions
    yield from targets_section(figures.observations, figures.curves)
    yield from blame_section(figures.observations, figures.lately)
    yield from transactions_section(transactions.live, transactions.live_curves)
    yield from _refused(figures.refusals)
    if transactions.logs is not None:
        yield from stm_section(transactions.logs, transactions.log_curves)
    if figures.portrait is not None:
        yield from agent_section(figures.portrait, figures.observations)


def _header() -> Iterator[str]:
    yield "<header><h1>gilscope</h1>"
    yield f"<p>Version {text(gilscope.__version__)}</p>"
    yield '<p>For Prometheus: <a href="metrics">/metrics</a></p>'
    yield '<p>Health: <a href="healthz">/healthz</a></p>'
    yield '<p>Figures <span id="state">of the moment when the page was loaded</span></p>'
    yield '<button id="pause" type="button" hidden>Pause</button></header>'
    yield '<p id="problem" role="alert" hidden></p>'


def _refused(refusals: Sequence[Refusal]) -> Iterator[str]:
    if not refusals:
        return
    yield "<h2>Found, but not traced</h2>"
    rows = [
        (
            text(refusal.name),
            str(refusal.pid),
            f'{text(refusal.reason)}<br><span class="quiet">{text(refusal.remedy)}</span>',
        )
        for refusal in refusals
    ]
    yield from table("refused", _REFUSED, rows)
