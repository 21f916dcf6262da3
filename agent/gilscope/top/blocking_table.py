"""The lower pane of the live view: who keeps whom waiting in one process, who holds, and where."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from gilscope.model.application import Application
from gilscope.model.gil import Edge, HolderSamples
from gilscope.model.kinds import Kind
from gilscope.model.stack import Frame, Stack
from gilscope.naming.application import application_frame
from gilscope.naming.hold_states import TellingState, why_words
from gilscope.naming.places import IN_WORDS, SiteNames
from gilscope.naming.routes import route_name
from gilscope.series.held_by import held_places
from gilscope.series.holders import losses_by_holder
from gilscope.text.printable import printable
from gilscope.text.units import counted, percent, short_duration
from gilscope.top.figures import a_second, seconds, share
from gilscope.top.layout import BLANK, Line, Row, Span, Tone, fit, fit_site, left, right
from gilscope.top.rates import PairRates, ProcessRates
from gilscope.values import dataclass
from gilscope.verdict.change_words import changes_so_far
from gilscope.verdict.estimates import about
from gilscope.verdict.no_contention import no_contention

__all__ = [
    "Ends",
    "Sources",
    "changes",
    "details",
    "frames",
    "heading",
    "held_by",
    "kept_by",
    "pair_ends",
    "routes",
    "rows",
    "when_empty",
]

Sources = Mapping[tuple[str, int], str]
"""Source lines by file and number, those that could be read."""

_LOST_WIDTH = 9
_TOTAL_WIDTH = 10
_KIND_WIDTH = max(len(kind.value) for kind in Kind)
_GAP = "  "
_MOST_HOLDERS = 3
_MOST_ROUTES = 3
_LEAST_SHARE = 0.05


@dataclass(frozen=True, slots=True)
class Ends:
    """Pairs of stacks that end in the same two places, and the waits of one kind between them."""

    kind: Kind
    waiter: str
    """Its site, or in words why there is none."""
    holder: str
    pairs: tuple[PairRates, ...]
    """The costliest first."""

    @property
    def key(self) -> tuple[Kind, str, str]:
        """What tells it from the others of the process."""
        return self.kind, self.waiter, self.holder

    @property
    def lost_ns(self) -> int:
        """Time lost in the interval."""
        return sum(pair.lost.ns for pair in self.pairs)

    @property
    def total_ns(self) -> int:
        """Time lost since the attachment."""
        return sum(pair.total.ns for pair in self.pairs)


def pair_ends(pairs: Iterable[PairRates], names: SiteNames) -> list[Ends]:
    """Return *pairs* by the places that they end in, the costliest of the interval first."""
    found: dict[tuple[Kind, str, str], list[PairRates]] = {}
    for pair in pairs:
        ends = (pair.kind, names.innermost(pair.waiter), names.innermost(pair.holder))
        found.setdefault(ends, []).append(pair)
    every = [Ends(*ends, tuple(same)) for ends, same in found.items()]
    return sorted(every, key=lambda ends: (-ends.lost_ns, -ends.total_ns))


def kept_by(process: ProcessRates, application: Application, names: SiteNames) -> str:
    """Return whose code has kept the GIL in the interval, with the shares; empty: nobody's has."""
    edges = [Edge(pair.kind, pair.waiter, pair.holder, pair.lost) for pair in process.pairs]
    losses = losses_by_holder(edges, application, process.held_up)
    lost_ns = sum(loss.lost.ns for loss in losses)
    mark = about(is_estimate=process.is_estimate)
    places = (
        f"{mark}{percent(loss.lost.ns / lost_ns)} {_place(loss.frame, loss.costliest, names)}"
        + _why(loss.states)
        for loss in losses[:_MOST_HOLDERS]
        if loss.lost.ns > _LEAST_SHARE * lost_ns
    )
    return "; ".join(places)


def held_by(samples: HolderSamples | None, application: Application, names: SiteNames) -> str:
    """Return whose code has held the GIL, by *samples*, with the shares of the time; or nothing."""
    if samples is None:
        return ""
    places = (
        f"≈ {percent(each.share)} ±{max(1, round(100 * each.error))} "
        + _place(each.frame, each.costliest, names)
        + _why(each.states)
        for each in held_places(samples, application)[:_MOST_HOLDERS]
        if each.share > _LEAST_SHARE
    )
    return "; ".join(places)


def changes(process: ProcessRates, application: Application) -> str:
    """Return what changes of the program would bring, by all that was seen of it; or nothing."""
    if process.seen is None or process.ended:
        return ""
    return "; ".join(
        f"{each.what}: {each.gain}" for each in changes_so_far(process.seen, application)
    )


def routes(process: ProcessRates, application: Application, names: SiteNames) -> str:
    """Return the routes whose requests have waited in the interval, and for whom; or nothing."""
    return "; ".join(
        f"{route_name(each.route)} "
        f"{short_duration(each.mean_ns)} a request, behind "
        + printable(names.owner(application_frame(each.holder, application), each.holder))
        for each in process.routes[:_MOST_ROUTES]
    )


def _why(states: Iterable[TellingState]) -> str:
    why = why_words(states)
    return f" ({printable(why)})" if why else ""


def _place(frame: Frame | None, costliest: Stack, names: SiteNames) -> str:
    place = names.owner(frame, costliest)
    leaf: Sequence[Frame] = costliest.frames[:1]
    below = f", in {names.site(leaf[0])}" if leaf and leaf[0] != frame else ""
    return printable(place + below)


def heading(width: int) -> Line:
    """Return the line above the pairs."""
    words = (
        f"{right('lost ms/s', _LOST_WIDTH)}{right('total s', _TOTAL_WIDTH)}"
        f"{_GAP}kind, waiter and holder"
    )
    return (Span(left(words, width), Tone.HEAD),)


def rows(every: Iterable[Ends], elapsed_ns: int, width: int) -> list[Row]:
    """Return two lines of *width* cells for each pair of places."""
    indent = " " * (_LOST_WIDTH + _TOTAL_WIDTH) + _GAP
    room = width - len(indent) - _KIND_WIDTH - len(_GAP)
    found = []
    for ends in every:
        lost = share(ends.lost_ns, elapsed_ns)
        figures = right("" if lost is None else a_second(lost), _LOST_WIDTH)
        figures += right(seconds(ends.total_ns), _TOTAL_WIDTH) + _GAP
        waiter, holder = (fit_site(printable(end), room) for end in (ends.waiter, ends.holder))
        first = (
            Span(figures),
            Span(left(ends.kind.value, _KIND_WIDTH) + _GAP, Tone.BOLD),
            Span(waiter, Tone.BOLD),
        )
        second = (Span(indent + left("held by", _KIND_WIDTH) + _GAP, Tone.DIM), Span(holder))
        found.append(Row(ends.key, (first, second)))
    return found


def when_empty(process: ProcessRates) -> str:
    """Return why there are no pairs to be shown of *process*."""
    if process.lost_ns:
        return "Threads wait, but who keeps them waiting is not known yet, or not for this process."
    meaning = no_contention(process.holder_samples, places="above, at held by")
    return "\n".join(
        ("No thread has had to wait for another since the process is traced.", *meaning)
    )


def frames(ends: Ends) -> tuple[Frame, ...]:
    """Return the places of which `details` shows the source lines."""
    return (*ends.pairs[0].waiter.frames, *ends.pairs[0].holder.frames)


def details(
    ends: Ends, elapsed_ns: int, names: SiteNames, sources: Sources, width: int
) -> list[Line]:
    """Return the two stacks of the costliest of *ends*, in lines of *width* cells."""
    costliest = ends.pairs[0]
    return [
        *_sum(ends, elapsed_ns),
        BLANK,
        (Span("waiting", Tone.BOLD),),
        *_stack_lines(costliest.waiter, names, sources, width),
        BLANK,
        (Span("held by", Tone.BOLD),),
        *_stack_lines(costliest.holder, names, sources, width),
        *_others(ends),
    ]


def _sum(ends: Ends, elapsed_ns: int) -> Iterator[Line]:
    lost = share(ends.lost_ns, elapsed_ns)
    waits = sum(pair.total.count for pair in ends.pairs)
    lately = "" if lost is None else f"{a_second(lost)} ms/s lost lately, "
    yield (
        Span(ends.kind.value, Tone.BOLD),
        Span(f"  {lately}{seconds(ends.total_ns)} s in {counted(waits, 'wait')} total"),
    )


def _others(ends: Ends) -> Sequence[Line]:
    more = len(ends.pairs) - 1
    if not more:
        return ()
    words = "stacks end" if more > 1 else "pair of stacks ends"
    count = f"{more} more pairs of" if more > 1 else "1 more"
    return (BLANK, (Span(f"{count} {words} in the same two places.", Tone.DIM),))


def _stack_lines(stack: Stack, names: SiteNames, sources: Sources, width: int) -> Iterator[Line]:
    indent = len(_GAP)
    for frame in stack.frames:
        yield (Span(_GAP + fit_site(printable(names.site(frame)), width - indent)),)
        source = "" if frame.line is None else sources.get((frame.file, frame.line), "")
        if source:
            yield (Span(2 * _GAP + fit(source, width - 2 * indent), Tone.DIM),)
    words = IN_WORDS.get(stack.state)
    if words is not None:
        yield (Span(_GAP + words, Tone.DIM),)
