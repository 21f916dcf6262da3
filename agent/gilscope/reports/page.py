"""The landing page of ``serve``: which processes are traced, and in which state."""

from collections.abc import Iterable, Iterator, Sequence
from html import escape

import gilscope
from gilscope.model import Observation, ProcessTotals, Refusal
from gilscope.reports.agent_section import SelfPortrait, agent_section
from gilscope.reports.units import percent, seconds, short_duration

__all__ = ["render"]

# Where there is no room for the columns, a process is a card with a line for each of them.
_STYLE = """\
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 90rem; padding: 0 1rem }
h1 { font-size: 1.4rem; margin-bottom: 0 } h2 { font-size: 1.1rem; margin-top: 2rem }
table { border-collapse: collapse; width: 100% }
th, td { text-align: left; padding: .3rem .8rem .3rem 0; border-bottom: 1px solid #8884;
  vertical-align: top }
th { vertical-align: bottom; line-height: 1.25 } td, dd { overflow-wrap: anywhere }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; overflow-wrap: normal }
td.n { white-space: nowrap }
.bad { color: #c22 } .quiet { opacity: .7 }
@media (prefers-color-scheme: dark) { .bad { color: #f77 } }
dl.agent { display: grid; grid-template-columns: repeat(auto-fill, minmax(20rem, 1fr));
  gap: .4rem 2rem; margin: 0 }
dt { opacity: .7; font-size: .85rem } dd { margin: 0 }
@media (max-width: 80rem) {
  table.targets, .targets tbody, .targets tr, .targets td { display: block }
  .targets tr:first-child { display: none }
  .targets tr { display: grid; grid-template-columns: repeat(auto-fill, minmax(10rem, 1fr));
    gap: .3rem 1.5rem; padding: .8rem 0; border-bottom: 1px solid #8884 }
  .targets td { border: 0; padding: 0 } .targets td.n { text-align: left }
  .targets td:empty { display: none }
  .targets td::before { content: attr(data-name); display: block; opacity: .7;
    font-size: .85rem }
}
"""

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


def render(
    observations: Sequence[Observation],
    refusals: Iterable[Refusal],
    portrait: SelfPortrait | None = None,
) -> str:
    """Return the page as HTML that needs nothing else."""
    refusals = tuple(refusals)
    ranked = sorted(observations, key=lambda seen: -_wait_ns(seen))
    return "\n".join(
        (
            "<!doctype html>",
            '<html lang="en"><head><meta charset="utf-8"><title>gilscope</title>',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<style>{_STYLE}</style></head><body>",
            "<h1>gilscope</h1>",
            _LINKS,
            "<h2>Traced processes</h2>",
            _table(ranked) if ranked else "<p>None yet.</p>",
            *(_refused(refusals) if refusals else ()),
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
