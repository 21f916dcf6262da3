"""What the text report says first: whose code held the GIL while others waited for it."""

from collections.abc import Iterator, Mapping, Sequence

from gilscope.model.gil import Recording
from gilscope.naming.hold_states import why_words
from gilscope.naming.places import SiteNames
from gilscope.series.holders import HolderLoss, losses_by_holder
from gilscope.text.ansi import Paint
from gilscope.text.printable import printable
from gilscope.text.units import counted, percent, seconds

__all__ = ["Sources", "loss_lines", "whose_code_lines"]

Sources = Mapping[tuple[str, int], str]
"""Source lines by file and number."""

_MOST_SHOWN = 5
_LEAST_SHARE = 0.01
_INDENT = " " * 19


def whose_code_lines(recording: Recording, paint: Paint) -> Iterator[str]:
    """Yield the application's functions that held the GIL, the most time lost first.

    Nothing where that was not observed.
    """
    totals = recording.observation.totals
    losses = losses_by_holder(totals.edges, recording.application, totals.held_up)
    if not losses:
        return
    noted_ns = sum(loss.lost.ns for loss in losses)
    lost_ns = max(1, noted_ns, totals.wait_ns)
    names = SiteNames()
    yield paint.bold("Whose code kept the GIL")
    yield from loss_lines(losses, lost_ns, recording.sources, names, paint)


def loss_lines(
    losses: Sequence[HolderLoss], lost_ns: int, sources: Sources, names: SiteNames, paint: Paint
) -> Iterator[str]:
    """Yield the costliest of *losses* with their source lines, and how many are left out."""
    shown = [
        loss for loss in losses[:_MOST_SHOWN] if loss.lost.ns >= _LEAST_SHARE * lost_ns
    ] or losses[:1]
    for loss in shown:
        yield from _loss_lines(loss, lost_ns, sources, names, paint)
    yield from _left_out(losses[len(shown) :], lost_ns)


def _loss_lines(
    loss: HolderLoss, lost_ns: int, sources: Sources, names: SiteNames, paint: Paint
) -> Iterator[str]:
    share = percent(loss.lost.ns / lost_ns)
    place = printable(names.owner(loss.frame, loss.costliest))
    yield (
        f"{seconds(loss.lost.ns):>10}{share:>7}  {paint.bold(place)}"
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


def _left_out(losses: Sequence[HolderLoss], lost_ns: int) -> Iterator[str]:
    if losses:
        left_ns = sum(loss.lost.ns for loss in losses)
        places = counted(len(losses), "more place")
        yield f"{seconds(left_ns):>10}{percent(left_ns / lost_ns):>7}  in {places}"
