"""What the text report says first: whose code held the GIL while others waited for it."""

from collections.abc import Iterator, Mapping, Sequence

from gilscope.model.gil import Recording
from gilscope.naming.hold_states import why_words
from gilscope.naming.places import SiteNames
from gilscope.series.holders import HolderLoss, losses_by_holder
from gilscope.text.ansi import Paint
from gilscope.text.printable import printable
from gilscope.text.units import counted, percent, seconds
from gilscope.values import dataclass
from gilscope.verdict.estimates import about, are_shared_out

__all__ = ["Sources", "Whole", "libraries_alone_lines", "loss_lines", "whose_code_lines"]

Sources = Mapping[tuple[str, int], str]
"""Source lines by file and number."""

_MOST_SHOWN = 5
_LEAST_SHARE = 0.01
_INDENT = " " * 19


@dataclass(frozen=True, slots=True)
class Whole:
    """What places have lost a part of."""

    lost_ns: int
    mark: str
    """What stands before the parts, if they are estimates."""

    def time(self, ns: int) -> str:
        """Return a part of it in seconds."""
        return self.mark + seconds(ns)

    def share(self, ns: int) -> str:
        """Return a part of it in percent."""
        return self.mark + percent(ns / self.lost_ns)


def whose_code_lines(recording: Recording, paint: Paint) -> Iterator[str]:
    """Yield the application's functions that held the GIL, the most time lost first.

    Nothing where that was not observed.
    """
    totals = recording.observation.totals
    losses = losses_by_holder(totals.edges, recording.application, totals.held_up)
    if not losses:
        return
    noted_ns = sum(loss.lost.ns for loss in losses)
    whole = Whole(max(1, noted_ns, totals.wait_ns), about(is_estimate=are_shared_out(totals)))
    names = SiteNames()
    yield paint.bold("Whose code kept the GIL")
    yield from loss_lines(losses, whole, recording.sources, names, paint)
    yield from libraries_alone_lines(losses)


def libraries_alone_lines(losses: Sequence[HolderLoss]) -> Iterator[str]:
    """Yield what it means that the costliest of *losses* is at no place of the application."""
    if losses[0].frame is None and losses[0].costliest.frames:
        yield "Libraries alone: no code of the application called them; --app names it."


def loss_lines(
    losses: Sequence[HolderLoss], whole: Whole, sources: Sources, names: SiteNames, paint: Paint
) -> Iterator[str]:
    """Yield the costliest of *losses* with their source lines, and how many are left out."""
    least_ns = _LEAST_SHARE * whole.lost_ns
    shown = [loss for loss in losses[:_MOST_SHOWN] if loss.lost.ns >= least_ns] or losses[:1]
    for loss in shown:
        yield from _loss_lines(loss, whole, sources, names, paint)
    yield from _left_out(losses[len(shown) :], whole)


def _loss_lines(
    loss: HolderLoss, whole: Whole, sources: Sources, names: SiteNames, paint: Paint
) -> Iterator[str]:
    lost, share = whole.time(loss.lost.ns), whole.share(loss.lost.ns)
    place = printable(names.owner(loss.frame, loss.costliest))
    yield (
        f"{lost:>10} {share:>6}  {paint.bold(place)}"
        f", {'' if loss.is_one_kind else 'mostly '}{loss.kind.value}"
    )
    frame = loss.frame
    if frame is not None and (frame.file, frame.line) in sources:
        yield f"{_INDENT}  {printable(sources[frame.file, frame.line or 0])}"
    why = why_words(loss.states)
    if why:
        yield f"{_INDENT}{printable(why)}"
    inner = loss.costliest.frames[:1]
    if inner and inner[0] != frame:
        more = f" and {loss.leaves - 1} other functions" if loss.leaves > 1 else ""
        yield paint.dim(f"{_INDENT}in {printable(names.site(inner[0]))}{more}")


def _left_out(losses: Sequence[HolderLoss], whole: Whole) -> Iterator[str]:
    if losses:
        left_ns = sum(loss.lost.ns for loss in losses)
        places = counted(len(losses), "more place")
        yield f"{whole.time(left_ns):>10} {whole.share(left_ns):>6}  in {places}"
