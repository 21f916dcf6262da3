"""The report of a recording as one HTML file that needs nothing else."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from markupsafe import Markup

from gilscope.model.gil import Recording
from gilscope.naming.places import SiteNames
from gilscope.reports.gil.html.data import report_data
from gilscope.reports.gil.html.flames import flames_section
from gilscope.reports.gil.html.held_by import held_by_section
from gilscope.reports.gil.html.matrix import matrix_section
from gilscope.reports.gil.html.pairs import lost_ns, pairs_of, pairs_section
from gilscope.reports.gil.html.summary import heading, summary_section
from gilscope.reports.gil.html.threads import (
    interpreters_section,
    slow_drops_section,
    threads_section,
)
from gilscope.reports.gil.html.whose_code import whose_code_section
from gilscope.reports.html.document import END, head
from gilscope.reports.html.durations import durations_section
from gilscope.reports.html.markup import asset, embedded_json, joined, tag, text, time_lost
from gilscope.series.holders import losses_by_holder

__all__ = ["render"]

_STYLE = Path(__file__).parents[2] / "html" / "report.css"
_SCRIPT = Path(__file__).with_suffix(".js")
_MOST_OTHERS = 20


def render(recording: Recording, *others: Recording) -> Markup:
    """Return the page; it loads nothing, and runs no script but its own.

    It is about *recording*, and names the *others*.
    """
    style, script = asset(_STYLE), asset(_SCRIPT)
    process = recording.observation.process
    title = Markup("GIL report: {}, pid {}").format(text(process.name), process.pid)
    body = _body(recording, others, script)
    return joined((*head(title, style, script), *body, END), "\n")


def _body(recording: Recording, others: Sequence[Recording], script: Markup) -> Iterator[Markup]:
    observation = recording.observation
    totals = observation.totals
    yield from heading(recording)
    yield Markup("<main>")
    yield from _others(others)
    if observation.invalid:
        yield Markup('<p class="bad">Nothing is reported, because {}.</p></main>').format(
            text(observation.invalid)
        )
        return
    names = SiteNames()
    pairs = pairs_of(totals.edges, names)
    losses = losses_by_holder(totals.edges, recording.application)
    yield from summary_section(recording, losses, names)
    yield from whose_code_section(losses, lost_ns(totals), recording.sources, names)
    yield from held_by_section(recording, names)
    if pairs:
        yield from matrix_section(totals.edges, names)
        yield from pairs_section(pairs, lost_ns(totals))
        yield from flames_section()
    yield from slow_drops_section(totals.slow_drops, recording.sources, names)
    yield from durations_section(totals.gils)
    yield from threads_section(recording)
    yield from interpreters_section(recording)
    yield Markup("</main>")
    data = report_data(totals, recording.sources, pairs, names)
    yield tag("script", embedded_json(data), type="application/json", id="data")
    yield tag("script", script)


def _others(others: Sequence[Recording]) -> Iterator[Markup]:
    if others:
        yield Markup(
            '<section id="others"><p>This page is about the process that lost the most. Of the '
            "others, which the text and JSON reports show as well:</p><ul>"
        )
        for other in others[:_MOST_OTHERS]:
            process, totals = other.observation.process, other.observation.totals
            yield Markup("<li>{}, pid {}: {} lost waiting</li>").format(
                text(process.name), process.pid, time_lost(totals.wait_ns)
            )
        if len(others) > _MOST_OTHERS:
            yield tag("li", f"and {len(others) - _MOST_OTHERS} more")
        yield Markup("</ul></section>")
