"""Waits by the two places at their ends, and the table of them."""

from collections.abc import Iterator, Mapping, Sequence

from markupsafe import Markup

from gilscope.model.gil import Edge, ProcessTotals, Tally
from gilscope.model.kinds import Kind
from gilscope.model.stack import StackState
from gilscope.naming.places import ENTERS_PYTHON, IN_WORDS, SiteNames
from gilscope.reports.gil.words import KIND_NAMES
from gilscope.reports.html.markup import EMPTY, figure, share, tag, text, time_lost
from gilscope.text.units import counted
from gilscope.values import dataclass

__all__ = ["MOST_ROWS", "Pair", "known_ns", "lost_ns", "pairs_of", "pairs_section"]

MOST_ROWS = 1000
"""How many fit on a page that opens at once."""

_COLUMNS = (
    ("kind", "kind", ""),
    ("waiter", "waiter stood in", ""),
    ("holder", "holder stood in", ""),
    ("lost", "time lost", "n"),
    ("share", "share", "n"),
    ("times", "times", "n"),
)


@dataclass(frozen=True, slots=True)
class Pair:
    """All edges that join the same two sites by waits of one kind."""

    kind: Kind
    waiter: str
    """The innermost site of the waiter, or in words why there is none."""
    holder: str
    lost: Tally
    edges: tuple[int, ...]
    """Their positions in `ProcessTotals.edges`, the costliest first."""


def pairs_of(edges: Sequence[Edge], names: SiteNames) -> list[Pair]:
    """Return *edges* by kind and innermost sites, the costliest pair first."""
    groups: dict[tuple[Kind, str, str], list[int]] = {}
    for index, edge in enumerate(edges):
        key = (edge.kind, names.innermost(edge.waiter), names.innermost(edge.holder))
        groups.setdefault(key, []).append(index)
    pairs = [
        Pair(
            *key,
            lost=sum((edges[index].lost for index in group), start=Tally()),
            edges=tuple(sorted(group, key=lambda index: -edges[index].lost.ns)),
        )
        for key, group in groups.items()
    ]
    return sorted(
        pairs, key=lambda pair: (-pair.lost.ns, pair.waiter, pair.holder, pair.kind.value)
    )


def known_ns(totals: ProcessTotals) -> int:
    """Return the waiting time of which it is known where both the waiter and the holder stood."""
    return sum(
        edge.lost.ns for edge in totals.edges if edge.waiter.is_known and edge.holder.is_known
    )


def lost_ns(totals: ProcessTotals) -> int:
    """Return the time lost by all threads, of which shares are told."""
    noted_ns = sum(edge.lost.ns for edge in totals.edges)
    return max(noted_ns, totals.wait_ns)


def pairs_section(
    pairs: Sequence[Pair], whole_ns: int, mark: str, kinds: Mapping[Kind, str]
) -> Iterator[Markup]:
    """Yield the table of *pairs*, at most `MOST_ROWS` of them, with their shares of *whole_ns*.

    *mark* stands before what is an estimate; *kinds* says what waiters of each kind did.
    """
    yield Markup('<section id="pairs"><h2>Pairs of places</h2>')
    yield Markup(
        "<p>Each row is the time that threads at one place were kept waiting by a thread at "
        "another place. A wait that is kept by several holders in turn counts at each of them "
        "with its part of the time.</p>"
    )
    yield Markup(
        '<p class="tools"><label>Find <input type="search" placeholder="function, file or line" '
        'aria-controls="pairs-rows"></label> '
        '<label class="switch-regex"><input type="checkbox" class="regex"> regular expression'
        "</label> "
        '<output class="pairs-found" aria-live="polite"></output></p>'
    )
    yield Markup('<table class="pairs"><thead><tr>')
    for key, heading, kind in _COLUMNS:
        order = Markup(' aria-sort="descending"') if key == "lost" else EMPTY
        yield Markup(
            '<th scope="col" class="{}" data-key="{}"{}><button type="button">{}</button></th>'
        ).format(kind, key, order, mark + heading if kind == "n" else heading)
    yield Markup('</tr></thead><tbody id="pairs-rows">')
    for index, pair in enumerate(pairs[:MOST_ROWS]):
        yield _row(index, pair, whole_ns)
    yield Markup("</tbody></table>")
    yield Markup('<p class="more" hidden><button type="button"></button></p>')
    yield from _left_out(pairs[MOST_ROWS:])
    yield from _legend(pairs, kinds)
    yield Markup("</section>")


def _row(index: int, pair: Pair, whole_ns: int) -> Markup:
    return tag(
        "tr",
        tag("td", KIND_NAMES[pair.kind]),
        tag("td", text(pair.waiter), class_="site waiter"),
        tag("td", text(pair.holder), class_="site holder"),
        figure(pair.lost.ns),
        tag("td", share(pair.lost.ns, whole_ns), class_="n", data_v=pair.lost.ns),
        tag("td", pair.lost.count, class_="n", data_v=pair.lost.count),
        class_="pair",
        data_pair=index,
    )


def _left_out(rest: Sequence[Pair]) -> Iterator[Markup]:
    if rest:
        left_ns = sum(pair.lost.ns for pair in rest)
        yield Markup(
            '<p class="quiet">{} with {} together {} left out of this table; '
            "the JSON report has all of them.</p>"
        ).format(
            counted(len(rest), "more pair"), time_lost(left_ns), "is" if len(rest) == 1 else "are"
        )


def _legend(pairs: Sequence[Pair], kinds: Mapping[Kind, str]) -> Iterator[Markup]:
    seen = {pair.kind for pair in pairs}
    yield Markup('<dl class="legend">')
    for kind, words in kinds.items():
        if kind in seen:
            yield tag("div", tag("dt", KIND_NAMES[kind]), tag("dd", f"the waiter {words}"))
    nowhere = IN_WORDS[StackState.NO_PYTHON]
    if nowhere in {pair.waiter for pair in pairs}:
        yield tag("div", tag("dt", nowhere), tag("dd", f"as a waiter: {ENTERS_PYTHON}"))
    yield Markup("</dl>")
