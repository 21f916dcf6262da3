"""The report of a recording as one HTML file that needs nothing else."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from markupsafe import Markup

from gilscope.model.gil import Recording
from gilscope.naming.places import SiteNames
from gilscope.reports.gil.html.changes import changes_section
from gilscope.reports.gil.html.data import report_data
from gilscope.reports.gil.html.flames import flames_section
from gilscope.reports.gil.html.heat import heat_section
from gilscope.reports.gil.html.held_by import held_by_section
from gilscope.reports.gil.html.matrix import matrix_section
from gilscope.reports.gil.html.moment import moment_section
from gilscope.reports.gil.html.pairs import lost_ns, pairs_of, pairs_section
from gilscope.reports.gil.html.script import script as page_script
from gilscope.reports.gil.html.summary import heading, summary_section
from gilscope.reports.gil.html.threads import (
    interpreters_section,
    slow_drops_section,
    threads_section,
)
from gilscope.reports.gil.html.traces import held_traces_section, routes_section, traces_section
from gilscope.reports.gil.html.whose_code import whose_code_section
from gilscope.reports.gil.words import kind_words
from gilscope.reports.html.document import END, head
from gilscope.reports.html.durations import durations_section
from gilscope.reports.html.markup import (
    asset,
    embedded_json,
    joined,
    numbered,
    tag,
    text,
    time_lost,
)
from gilscope.series.holders import losses_by_holder
from gilscope.verdict.estimates import about, are_shared_out

__all__ = ["render"]

_STYLE = Path(__file__).parents[2] / "html" / "report.css"
_MOST_PROCESSES = 10
"""That have a part of their own; more of them would make a page that nobody can open."""
_MOST_NAMED = 20


def render(*recordings: Recording, more: Sequence[Markup] = ()) -> Markup:
    """Return the page, with *more* as its last part; it runs no script but its own.

    Each of *recordings* that has lost anything has a part, the first one in any case; the others
    are named.
    """
    style, script = asset(_STYLE), page_script()
    process = recordings[0].observation.process
    title = Markup("GIL report: {}, pid {}").format(text(process.name), process.pid)
    body = _body(recordings, more, script)
    return joined((*head(title, style, script), *body, END), "\n")


def _body(
    recordings: Sequence[Recording], more: Sequence[Markup], script: Markup
) -> Iterator[Markup]:
    first, *others = recordings
    told = [each for each in others if lost_ns(each.observation.totals)][: _MOST_PROCESSES - 1]
    yield from heading(first)
    yield Markup("<main>")
    yield from _contents(first, told, [each for each in others if each not in told])
    yield from _part(first)
    for number, recording in enumerate(told, 2):
        for line in (*heading(recording), *_part(recording)):
            yield numbered(line, number)
    yield from more
    yield Markup("</main>")
    if not all(each.observation.invalid for each in (first, *told)):
        yield tag("script", script)


def _part(recording: Recording) -> Iterator[Markup]:
    observation = recording.observation
    totals = observation.totals
    if observation.invalid:
        yield Markup('<p class="bad">Nothing is reported, because {}.</p>').format(
            text(observation.invalid)
        )
        return
    names = SiteNames()
    pairs = pairs_of(totals.edges, names)
    losses = losses_by_holder(totals.edges, recording.application, totals.held_up)
    yield Markup('<article class="process" id="process">')
    mark = about(is_estimate=are_shared_out(totals))
    yield from summary_section(recording, losses, names)
    yield from whose_code_section(losses, lost_ns(totals), recording.sources, names, mark)
    yield from changes_section(recording)
    yield from moment_section(recording, names)
    if pairs:
        yield from flames_section()
    yield from heat_section(recording, lost_ns(totals), names)
    yield from held_by_section(recording, names)
    yield from routes_section(recording, names)
    yield from traces_section(recording, names)
    yield from held_traces_section(recording)
    if pairs:
        yield from matrix_section(totals.edges, names)
        yield from pairs_section(pairs, lost_ns(totals), mark, kind_words(observation))
    yield from slow_drops_section(totals.slow_drops, recording.sources, names)
    yield from durations_section(totals.gils)
    yield from threads_section(recording)
    yield from interpreters_section(recording)
    data = report_data(totals, recording.application, recording.sources, pairs, names)
    yield tag("script", embedded_json(data), type="application/json", id="data")
    yield Markup("</article>")


def _contents(
    first: Recording, told: Sequence[Recording], rest: Sequence[Recording]
) -> Iterator[Markup]:
    if not told and not rest:
        return
    yield Markup('<nav id="processes"><p>Processes, those that lost the most first:</p><ul>')
    for number, recording in enumerate((first, *told), 1):
        process, totals = recording.observation.process, recording.observation.totals
        yield Markup('<li><a href="#process{}">{}, pid {}</a>: {} lost waiting</li>').format(
            "" if number == 1 else f"-{number}",
            text(process.name),
            process.pid,
            time_lost(totals.wait_ns),
        )
    yield Markup("</ul>")
    if rest:
        yield tag("p", _rest_words(rest), class_="quiet")
    yield Markup("</nav>")


def _rest_words(rest: Sequence[Recording]) -> Markup:
    quiet = not any(each.observation.totals.wait_ns for each in rest)
    processes = [each.observation.process for each in rest[:_MOST_NAMED]]
    named = Markup(", ").join(
        Markup("{} ({})").format(text(process.name), process.pid) for process in processes
    )
    more = f" and {len(rest) - _MOST_NAMED} more" if len(rest) > _MOST_NAMED else ""
    words = "Lost nothing" if quiet else "Lost less, and are in the text and JSON reports"
    return Markup("{}: {}{}.").format(words, named, more)
