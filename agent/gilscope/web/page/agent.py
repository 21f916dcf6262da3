"""The part of the landing page that is about the agent itself."""

from collections.abc import Iterable, Iterator, Sequence

from markupsafe import Markup, escape

from gilscope.model.agent import AgentState, TableState
from gilscope.model.gil import GilObservation
from gilscope.reports.html.markup import joined, tag
from gilscope.text.units import NS_PER_S, megabytes, percent, short_duration
from gilscope.values import dataclass

__all__ = ["SelfPortrait", "agent_section"]

_SITE_WORDS = {"full": "hold", "stepped": "hold, single-stepped", "contention": "wait"}
_MANY = 0.8
"""From this fill on a table deserves a warning."""


@dataclass(frozen=True, slots=True)
class SelfPortrait:
    """What the page tells about the agent."""

    state: AgentState
    last_scrape_ns: int | None
    """How long the last scrape took; None: there was none yet."""


def agent_section(
    portrait: SelfPortrait, observations: Iterable[GilObservation]
) -> Iterator[Markup]:
    """Yield the section as lines of HTML."""
    yield Markup("<h2>This agent</h2>")
    yield Markup('<dl class="agent">')
    for term, words in _facts(portrait, observations):
        yield tag("div", tag("dt", term), tag("dd", words))
    yield Markup("</dl>")


def _facts(
    portrait: SelfPortrait, observations: Iterable[GilObservation]
) -> Iterator[tuple[str, str]]:
    state = portrait.state
    running_ns = max(1, state.running_ns)
    yield (
        "memory",
        f"{megabytes(state.private_bytes)} private, {megabytes(state.resident_bytes)} resident",
    )
    core, looking = state.cpu_ns / running_ns, state.sampling_cpu_ns / max(1, state.cpu_ns)
    yield "CPU", f"{percent(core)} of a core on average, {percent(looking)} of it to sample locks"
    if state.trap_costs_ns:
        rate = state.traps * NS_PER_S / running_ns
        yield "traps", f"{_count(rate)} a second on average, {state.traps} total"
        yield "cost of a trap", _trap_costs(state)
        yield "maps", _maps(state.tables)
    lost = sum(sum(seen.totals.lost_events.values()) for seen in observations)
    yield "lost events", str(lost) if lost else "none"
    if state.bpf_misses:
        yield "left out by the kernel", _bad(f"{state.bpf_misses} runs of a program")
    if portrait.last_scrape_ns is not None:
        yield "last scrape", f"took {short_duration(portrait.last_scrape_ns)}"


def _trap_costs(state: AgentState) -> str:
    costs = ", ".join(
        f"{short_duration(round(cost_ns))} ({_SITE_WORDS.get(site, site)})"
        for site, cost_ns in state.trap_costs_ns.items()
    )
    return f"{costs}; {'measured' if state.is_measured else 'assumed'}"


def _maps(tables: Sequence[TableState]) -> Markup:
    sizes = [table.kernel_bytes for table in tables if table.kernel_bytes is not None]
    words = f"{megabytes(sum(sizes))} in the kernel" if sizes else ""
    fills = [
        (table.entries / table.capacity, table)
        for table in tables
        if table.entries is not None and table.capacity
    ]
    if not fills:
        return escape(words)
    share, fullest = max(fills, key=lambda fill: fill[0])
    fill = f"{fullest.name} the fullest with {percent(share)}"
    shown = _bad(fill) if share >= _MANY else escape(fill)
    return joined((escape(words), shown), ", ") if words else shown


def _bad(words: str) -> Markup:
    return tag("span", words, class_="bad")


def _count(number: float) -> str:
    return f"{number:.0f}" if number >= 10 or number == 0 else f"{number:.2g}"  # noqa: PLR2004
