"""The landing page of ``serve``: which processes are traced, and in which state."""

from collections.abc import Iterable, Sequence
from html import escape

import gilscope
from gilscope.model import Observation, Refusal
from gilscope.reports.units import percent, seconds, short_duration

__all__ = ["render"]

_STYLE = """\
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; padding: 0 1rem }
h1 { font-size: 1.4rem; margin-bottom: 0 } h2 { font-size: 1.1rem; margin-top: 2rem }
table { border-collapse: collapse; width: 100% }
th, td { text-align: left; padding: .3rem .8rem .3rem 0; border-bottom: 1px solid #8884 }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums }
.bad { color: #c22 } .quiet { opacity: .7 }
@media (prefers-color-scheme: dark) { .bad { color: #f77 } }
.scroll { overflow-x: auto }
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
    ("longest now", "n"),
)


def render(observations: Sequence[Observation], refusals: Iterable[Refusal]) -> str:
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
            "</body></html>\n",
        )
    )


def _table(observations: Iterable[Observation]) -> str:
    head = "".join(f'<th class="{kind}">{name}</th>' for name, kind in _HEADINGS)
    rows = "\n".join(_row(observation) for observation in observations)
    return f'<div class="scroll"><table><tr>{head}</tr>\n{rows}\n</table></div>'


def _row(observation: Observation) -> str:
    process, totals = observation.process, observation.totals
    waiting = [thread.waiting_ns for thread in totals.threads if thread.waiting_ns]
    wait_ns = _wait_ns(observation)
    share = wait_ns / max(1, totals.at_ns - observation.since_ns)
    figures = (
        (seconds(wait_ns), percent(share), str(sum(thread.waits for thread in totals.threads)))
        if not observation.invalid
        else ("", "", "")
    )
    cells = (
        escape(process.name),
        str(process.pid),
        escape(process.python),
        _state(observation),
        *figures,
        str(len(waiting)) if not observation.invalid else "",
        short_duration(max(waiting)) if waiting else "",
    )
    return (
        "<tr>"
        + "".join(
            f'<td class="{kind}">{cell}</td>'
            for cell, (_, kind) in zip(cells, _HEADINGS, strict=True)
        )
        + "</tr>"
    )


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
        f'<div class="scroll"><table>{head}\n{rows}\n</table></div>',
    )


def _wait_ns(observation: Observation) -> int:
    return sum(thread.wait_ns for thread in observation.totals.threads)
