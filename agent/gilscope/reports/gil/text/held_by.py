"""What the text report says of who held the GIL, whether anybody waited for it or not."""

from collections.abc import Iterable, Iterator

from gilscope.model.gil import Recording
from gilscope.naming.hold_states import calls_words, why_words
from gilscope.naming.places import SiteNames
from gilscope.reports.gil.words import process_words
from gilscope.series.held_by import HeldPlace, held_places
from gilscope.text.ansi import Paint
from gilscope.text.printable import printable
from gilscope.text.units import counted, percent

__all__ = ["computing_line", "held_by_lines"]

_MOST_SHOWN = 5
_LEAST_SHARE = 0.01
_BUSY = 0.5
_INDENT = " " * 13


def held_by_lines(recording: Recording, paint: Paint) -> Iterator[str]:
    """Yield the functions of the application that held the GIL, the longest first."""
    samples = recording.observation.totals.holder_samples
    if samples is None:
        return
    places = held_places(samples, recording.application)
    shown = [place for place in places if place.share >= _LEAST_SHARE][:_MOST_SHOWN]
    if not shown:
        return
    names = SiteNames()
    yield paint.bold("Who held the GIL, by place (sampled)")
    for place in shown:
        yield from _place_lines(place, recording, names, paint)
    yield paint.dim(f"Of all the time, from {counted(samples.samples, 'sample')}.")


def computing_line(recordings: Iterable[Recording]) -> Iterator[str]:
    """Yield which of *recordings* has code that holds its GIL for most of the time, if any."""
    places: list[tuple[HeldPlace, Recording]] = []
    for recording in recordings:
        samples = recording.observation.totals.holder_samples
        if samples is not None:
            places += ((each, recording) for each in held_places(samples, recording.application))
    busy = [each for each in places if each[0].share >= _BUSY]
    if busy:
        place, recording = max(busy, key=lambda each: each[0].share)
        name = printable(SiteNames().owner(place.frame, place.costliest))
        yield f"{process_words(recording)} computes, ≈ {percent(place.share)} of the time: {name}."


def _place_lines(
    place: HeldPlace, recording: Recording, names: SiteNames, paint: Paint
) -> Iterator[str]:
    error = f"±{max(1, round(100 * place.error))}"
    name = printable(names.owner(place.frame, place.costliest))
    yield f"{f'≈ {percent(place.share)}':>7} {error:<4} {paint.bold(name)}"
    frame = place.frame
    if frame is not None and (frame.file, frame.line) in recording.sources:
        yield f"{_INDENT}  {printable(recording.sources[frame.file, frame.line or 0])}"
    why = why_words(place.states)
    if why:
        yield f"{_INDENT}{printable(why)}"
    if place.calls:
        yield paint.dim(f"{_INDENT}{printable(calls_words(place.calls))}")
    inner = place.costliest.frames[:1]
    if inner and inner[0] != frame:
        yield paint.dim(f"{_INDENT}in {printable(names.site(inner[0]))}")
