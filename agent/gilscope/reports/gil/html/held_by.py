"""Who held the GIL, whether anybody waited for it or not: a table of samples."""

from collections.abc import Iterator

from markupsafe import Markup

from gilscope.model.gil import Recording
from gilscope.naming.hold_states import calls_words, why_words
from gilscope.naming.places import SiteNames
from gilscope.reports.html.markup import EMPTY, tag, text
from gilscope.series.held_by import HeldPlace, held_places
from gilscope.text.units import counted, percent
from gilscope.verdict.no_contention import no_contention

__all__ = ["held_by_section"]

_MOST_ROWS = 50
_LEAST_SHARE = 0.001


def held_by_section(recording: Recording, names: SiteNames) -> Iterator[Markup]:
    """Yield the table, and what it means where nobody waited; nothing without samples."""
    totals = recording.observation.totals
    samples = totals.holder_samples
    if samples is None or not samples.holders:
        return
    yield Markup('<section id="held-by"><h2>Who held the GIL, by place (sampled)</h2>')
    if not totals.wait_ns:
        yield tag("p", text(" ".join(no_contention(samples))))
    yield Markup(
        "<p>Each row is the share of all the time, from {}, for which the holder was in a "
        "function of the application, or in what that had called.</p>"
    ).format(counted(samples.samples, "sample"))
    yield Markup('<table class="by-place"><thead><tr><th scope="col">holder was in</th>')
    for heading in ("held", "give or take"):
        yield tag("th", heading, scope="col", class_="n")
    yield Markup("</tr></thead><tbody>")
    for place in held_places(samples, recording.application)[:_MOST_ROWS]:
        if place.share >= _LEAST_SHARE:
            yield tag(
                "tr",
                tag("td", _place(place, recording, names)),
                tag("td", f"≈ {percent(place.share)}", class_="n"),
                tag("td", f"{max(1, round(100 * place.error))} points", class_="n"),
            )
    yield Markup("</tbody></table></section>")


def _place(place: HeldPlace, recording: Recording, names: SiteNames) -> Markup:
    frame, leaf = place.frame, place.costliest.frames[:1]
    owner = text(names.owner(frame, place.costliest))
    site = tag("span", owner, class_="quiet" if frame is None else "site holder")
    line = None if frame is None else recording.sources.get((frame.file, frame.line or 0))
    source = EMPTY if line is None else tag("code", text(line), class_="source")
    why = why_words(place.states)
    state = tag("span", text(why), class_="state") if why else EMPTY
    if place.calls:
        state += tag("span", text(calls_words(place.calls)), class_="outer")
    if not leaf or leaf[0] == frame:
        return site + source + state
    return site + source + state + tag("span", "in ", text(names.site(leaf[0])), class_="outer")
