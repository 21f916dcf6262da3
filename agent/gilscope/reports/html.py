"""The report of a recording as one HTML file that needs nothing else."""

import base64
import hashlib
from collections.abc import Iterator
from pathlib import Path

from gilscope.model import Recording
from gilscope.reports.html_parts.data import report_data
from gilscope.reports.html_parts.durations import durations_section
from gilscope.reports.html_parts.flames import flames_section
from gilscope.reports.html_parts.markup import embedded_json, text
from gilscope.reports.html_parts.matrix import matrix_section
from gilscope.reports.html_parts.pairs import lost_ns, pairs_of, pairs_section
from gilscope.reports.html_parts.summary import heading, summary_section
from gilscope.reports.html_parts.threads import (
    culprits_section,
    interpreters_section,
    threads_section,
)
from gilscope.stacks import SiteNames

__all__ = ["render"]

_PARTS = Path(__file__).with_name("html_parts")


def render(recording: Recording) -> str:
    """Return the page; it loads nothing, and runs no script but its own."""
    style = (_PARTS / "report.css").read_text(encoding="utf-8")
    script = (_PARTS / "report.js").read_text(encoding="utf-8")
    lines = (*_head(recording, style, script), *_body(recording, script), "</body></html>")
    return "\n".join(lines) + "\n"


def _head(recording: Recording, style: str, script: str) -> Iterator[str]:
    # What the traced process calls itself is on this page, so that nothing but these two may act.
    policy = (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
        "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'"
    )
    process = recording.observation.process
    yield "<!doctype html>"
    yield '<html lang="en"><head><meta charset="utf-8">'
    yield f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield '<meta name="color-scheme" content="light dark">'
    yield '<meta name="referrer" content="no-referrer">'
    yield f"<title>GIL report: {text(process.name)}, pid {process.pid}</title>"
    yield f"<style>{style}</style></head><body>"


def _body(recording: Recording, script: str) -> Iterator[str]:
    observation = recording.observation
    totals = observation.totals
    yield from heading(recording)
    yield "<main>"
    if observation.invalid:
        yield f'<p class="bad">Nothing is reported, because {text(observation.invalid)}.</p></main>'
        return
    names = SiteNames()
    pairs = pairs_of(totals.edges, names)
    yield from summary_section(recording, pairs)
    if pairs:
        yield from matrix_section(totals.edges, names)
        yield from pairs_section(pairs, lost_ns(totals))
        yield from flames_section()
    yield from culprits_section(totals.culprits, recording.sources, names)
    yield from durations_section(totals.gils)
    yield from threads_section(recording)
    yield from interpreters_section(recording)
    yield "</main>"
    data = report_data(totals, recording.sources, pairs, names)
    yield f'<script type="application/json" id="data">{embedded_json(data)}</script>'
    yield f"<script>{script}</script>"


def _digest(content: str) -> str:
    digest = hashlib.sha256(content.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"
