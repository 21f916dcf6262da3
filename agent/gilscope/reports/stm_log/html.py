"""The report on STM logs as one HTML file that needs nothing else and runs no script."""

from collections.abc import Iterator
from pathlib import Path

from markupsafe import Markup

import gilscope
from gilscope.model.histogram import Histogram
from gilscope.model.stm_log import LogGroup, StmLog, StmReport
from gilscope.reports.html.document import END, head
from gilscope.reports.html.durations import duration_chart
from gilscope.reports.html.markup import asset, joined, large_figure, share, tag, text, time_lost
from gilscope.reports.stm_log.html_plots import conflicts_plot, ends_plot, time_parts, times_plot
from gilscope.reports.stm_log.html_table import places_section
from gilscope.reports.stm_log.words import headline, warnings_of
from gilscope.stm_log.merge import by_line
from gilscope.text.units import NS_PER_S

__all__ = ["render"]

_HERE = Path(__file__)


def render(report: StmReport) -> Markup:
    """Return the page; it loads nothing, and no script may run in it."""
    style = asset(_HERE.parents[1] / "html" / "report.css") + asset(_HERE.with_suffix(".css"))
    names = ", ".join(group.summary.name for group in report.groups)
    title = Markup("STM report: ") + text(names)
    return joined((*head(title, style), *_body(report), END), "\n")


def _body(report: StmReport) -> Iterator[Markup]:
    yield Markup('<header><p class="tool">gilscope {}: STM report</p></header>').format(
        text(gilscope.__version__)
    )
    yield Markup("<main>")
    for group in report.groups:
        yield Markup('<article class="log">')
        yield from _group(group, report)
        yield Markup("</article>")
    warnings = [words for file in report.files for words in warnings_of(file)]
    if warnings:
        yield Markup('<section id="warnings"><h2>Warnings</h2><ul class="notes">')
        yield from (tag("li", text(words)) for words in warnings)
        yield Markup("</ul></section>")
    yield Markup("</main>")


def _group(group: LogGroup, report: StmReport) -> Iterator[Markup]:
    log = group.summary
    behind = f" from byte {log.offset}" if log.gap is not None else ""
    yield tag("h1", text(log.name), behind)
    yield tag("p", text(headline(log)), class_="quiet")
    yield from _members(group)
    yield from _figures(log)
    yield from times_plot(log)
    conflicts = by_line(log.conflicts)
    if conflicts:
        yield from conflicts_plot(log, conflicts)
    yield from ends_plot(log)
    yield from places_section(log, conflicts, report)
    yield from _durations(log)


def _members(group: LogGroup) -> Iterator[Markup]:
    if len(group.logs) == 1:
        return
    yield Markup('<table class="members"><thead><tr><th scope="col">log</th>')
    for heading in ("records", "duration", "commits", "aborts"):
        yield tag("th", heading, scope="col", class_="n")
    yield Markup("</tr></thead><tbody>")
    for log in group.logs:
        figures = (log.records, time_lost(log.span_ns), log.totals.commits, log.totals.aborts)
        yield tag(
            "tr",
            tag("th", text(log.name), scope="row"),
            *(tag("td", each, class_="n") for each in figures),
        )
    yield Markup("</tbody></table>")


def _figures(log: StmLog) -> Iterator[Markup]:
    totals = log.totals
    number = totals.commits + totals.aborts
    inside_ns = sum(part.time_ns for part in time_parts(log))
    yield Markup('<dl class="figures">')
    yield large_figure(time_lost(totals.total_ns), "real time", f"{log.records} records")
    yield large_figure(
        f"{inside_ns / max(1, totals.total_ns):.2f}",
        "threads in transactions",
        "at any moment, on average",
    )
    if number:
        per_s = number * NS_PER_S / max(1, totals.total_ns)
        yield large_figure(
            f"{100 * totals.aborts / number:.1f} %",
            "of the transactions aborted",
            f"{totals.aborts} of {number}, which are {per_s:.0f} a second",
        )
    lost_ns = sum(each.lost_ns for each in log.conflicts)
    paused_ns = sum(each.paused_ns for each in log.conflicts)
    yield large_figure(
        time_lost(lost_ns), "lost in aborts", f"{share(lost_ns, inside_ns)} of the time inside"
    )
    yield large_figure(
        time_lost(paused_ns),
        "paused because of conflicts",
        f"{share(paused_ns, inside_ns)} of the time inside",
    )
    yield Markup("</dl>")


def _durations(log: StmLog) -> Iterator[Markup]:
    charts: list[tuple[str, Histogram]] = [
        ("Committed", log.totals.committed_runs),
        ("Aborted", log.totals.aborted_runs),
    ]
    shown = [(heading, runs) for heading, runs in charts if runs.count]
    if not shown:
        return
    yield Markup('<section class="durations"><h2>How long transactions ran</h2>')
    yield Markup("<p>Without their pauses. Each bound is twice the one before.</p>")
    yield Markup('<div class="charts">')
    for heading, runs in shown:
        yield from duration_chart(heading, runs)
    yield Markup("</div></section>")
