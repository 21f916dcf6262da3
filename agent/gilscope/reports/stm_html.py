"""The report on STM logs as one HTML file that needs nothing else and runs no script."""

import base64
import hashlib
from collections.abc import Iterator
from pathlib import Path

import gilscope
from gilscope.histogram import Histogram
from gilscope.reports.html_parts.durations import duration_chart
from gilscope.reports.html_parts.markup import share, text, time_lost
from gilscope.reports.html_parts.stm_plots import (
    conflicts_plot,
    ends_plot,
    time_parts,
    times_plot,
)
from gilscope.reports.html_parts.stm_table import places_section
from gilscope.reports.stm_words import headline, warnings_of
from gilscope.stm.merge import by_line
from gilscope.stm.model import LogGroup, StmLog, StmReport

__all__ = ["render"]

_PARTS = Path(__file__).with_name("html_parts")
_NS_PER_S = 1_000_000_000


def render(report: StmReport) -> str:
    """Return the page; it loads nothing, and no script may run in it."""
    style = "".join(
        (_PARTS / name).read_text(encoding="utf-8") for name in ("report.css", "stm.css")
    )
    lines = (*_head(report, style), *_body(report), "</body></html>")
    return "\n".join(lines) + "\n"


def _head(report: StmReport, style: str) -> Iterator[str]:
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    # What stands in a log is on this page, so that nothing in it may act.
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    names = ", ".join(group.summary.name for group in report.groups)
    yield "<!doctype html>"
    yield '<html lang="en"><head><meta charset="utf-8">'
    yield f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield '<meta name="color-scheme" content="light dark">'
    yield '<meta name="referrer" content="no-referrer">'
    yield f"<title>STM report: {text(names)}</title>"
    yield f"<style>{style}</style></head><body>"


def _body(report: StmReport) -> Iterator[str]:
    yield f'<header><p class="tool">gilscope {text(gilscope.__version__)}: STM report</p></header>'
    yield "<main>"
    for group in report.groups:
        yield '<article class="log">'
        yield from _group(group, report)
        yield "</article>"
    warnings = [words for file in report.files for words in warnings_of(file)]
    if warnings:
        yield '<section id="warnings"><h2>Warnings</h2><ul class="notes">'
        yield from (f"<li>{text(words)}</li>" for words in warnings)
        yield "</ul></section>"
    yield "</main>"


def _group(group: LogGroup, report: StmReport) -> Iterator[str]:
    log = group.summary
    behind = f" from byte {log.offset}" if log.gap is not None else ""
    yield f"<h1>{text(log.name)}{behind}</h1>"
    yield f'<p class="quiet">{text(headline(log))}</p>'
    yield from _members(group)
    yield from _figures(log)
    yield from times_plot(log)
    conflicts = by_line(log.conflicts)
    if conflicts:
        yield from conflicts_plot(log, conflicts)
    yield from ends_plot(log)
    yield from places_section(log, conflicts, report)
    yield from _durations(log)


def _members(group: LogGroup) -> Iterator[str]:
    if len(group.logs) == 1:
        return
    yield '<table class="members"><thead><tr><th scope="col">log</th>'
    for heading in ("records", "duration", "commits", "aborts"):
        yield f'<th scope="col" class="n">{heading}</th>'
    yield "</tr></thead><tbody>"
    for log in group.logs:
        yield (
            f'<tr><th scope="row">{text(log.name)}</th><td class="n">{log.records}</td>'
            f'<td class="n">{time_lost(log.span_ns)}</td><td class="n">{log.totals.commits}</td>'
            f'<td class="n">{log.totals.aborts}</td></tr>'
        )
    yield "</tbody></table>"


def _figures(log: StmLog) -> Iterator[str]:
    totals = log.totals
    number = totals.commits + totals.aborts
    inside_ns = sum(part.time_ns for part in time_parts(log))
    yield '<dl class="figures">'
    yield _figure(time_lost(totals.total_ns), "real time", f"{log.records} records")
    yield _figure(
        f"{inside_ns / max(1, totals.total_ns):.2f}",
        "threads in transactions",
        "at any moment, on average",
    )
    if number:
        per_s = number * _NS_PER_S / max(1, totals.total_ns)
        yield _figure(
            f"{100 * totals.aborts / number:.1f} %",
            "of the transactions aborted",
            f"{totals.aborts} of {number}, which are {per_s:.0f} a second",
        )
    lost_ns = sum(each.lost_ns for each in log.conflicts)
    paused_ns = sum(each.paused_ns for each in log.conflicts)
    yield _figure(
        time_lost(lost_ns), "lost in aborts", f"{share(lost_ns, inside_ns)} of the time inside"
    )
    yield _figure(
        time_lost(paused_ns),
        "paused because of conflicts",
        f"{share(paused_ns, inside_ns)} of the time inside",
    )
    yield "</dl>"


def _figure(value: str, name: str, note: str) -> str:
    return f"<div><dt>{name}</dt><dd><strong>{value}</strong> <span>{note}</span></dd></div>"


def _durations(log: StmLog) -> Iterator[str]:
    charts: list[tuple[str, Histogram]] = [
        ("Committed", log.totals.committed_runs),
        ("Aborted", log.totals.aborted_runs),
    ]
    shown = [(heading, runs) for heading, runs in charts if runs.count]
    if not shown:
        return
    yield '<section class="durations"><h2>How long transactions ran</h2>'
    yield "<p>Without their pauses. Each bound is twice the one before.</p>"
    yield '<div class="charts">'
    for heading, runs in shown:
        yield from duration_chart(heading, runs)
    yield "</div></section>"
