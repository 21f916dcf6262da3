"""Whose code held the GIL while others waited for it: the answer first, and the table of all."""

from collections.abc import Iterator, Mapping, Sequence

from markupsafe import Markup

from gilscope.naming.hold_states import why_words
from gilscope.naming.places import IN_WORDS, SiteNames
from gilscope.reports.gil.words import KIND_NAMES
from gilscope.reports.html.markup import EMPTY, share, tag, text, time_lost
from gilscope.series.holders import HolderLoss

__all__ = ["lead", "whose_code_section"]

_MOST_ROWS = 50


def lead(losses: Sequence[HolderLoss], whole_ns: int, names: SiteNames, mark: str) -> Markup:
    """Return the costliest holder of *losses* in a sentence; nothing where none has a name.

    *mark* stands before what is an estimate.
    """
    for loss in losses:
        if loss.costliest.frames:
            return Markup(
                '<p class="lead">{}{}, {}{} of the time lost, went to waits while {} kept the GIL '
                "({}{}).</p>"
            ).format(
                mark,
                time_lost(loss.lost.ns),
                mark,
                share(loss.lost.ns, whole_ns),
                _who(loss, names),
                "" if loss.is_one_kind else "mostly ",
                KIND_NAMES[loss.kind],
            )
    return EMPTY


def _who(loss: HolderLoss, names: SiteNames) -> Markup:
    place = loss.frame or loss.costliest.frames[0]
    site = tag("span", text(names.site(place)), class_="site holder")
    return site if loss.frame else Markup("code of libraries alone, as {},").format(site)


def whose_code_section(
    losses: Sequence[HolderLoss],
    whole_ns: int,
    sources: Mapping[tuple[str, int], str],
    names: SiteNames,
    mark: str,
) -> Iterator[Markup]:
    """Yield the table of *losses*, with shares of *whole_ns*; nothing where there are none.

    *mark* stands before what is an estimate.
    """
    if not losses:
        return
    yield Markup('<section id="whose-code"><h2>Whose code kept the GIL</h2>')
    yield Markup(
        "<p>Each row is the time that threads waited while the holder was in a function of the "
        "application, or in what that had called.</p>"
    )
    yield Markup('<table class="by-place"><thead><tr><th scope="col">holder was in</th>')
    for heading in ("time lost", "share", "times"):
        yield tag("th", mark + heading, scope="col", class_="n")
    yield Markup("</tr></thead><tbody>")
    for loss in losses[:_MOST_ROWS]:
        yield tag(
            "tr",
            tag("td", _place(loss, sources, names)),
            tag("td", time_lost(loss.lost.ns), class_="n"),
            tag("td", share(loss.lost.ns, whole_ns), class_="n"),
            tag("td", loss.lost.count, class_="n"),
        )
    yield Markup("</tbody></table></section>")


def _place(loss: HolderLoss, sources: Mapping[tuple[str, int], str], names: SiteNames) -> Markup:
    if not loss.costliest.frames:
        return tag("span", IN_WORDS[loss.costliest.state], class_="quiet")
    frame, leaf = loss.frame, loss.costliest.frames[0]
    if frame is None:
        place, source = tag("span", "libraries alone", class_="quiet"), None
    else:
        place = tag("span", text(names.site(frame)), class_="site holder")
        source = sources.get((frame.file, frame.first_line if frame.line is None else frame.line))
    code = EMPTY if source is None else tag("code", text(source), class_="source")
    more = f" and {loss.leaves - 1} more" if loss.leaves > 1 else ""
    below = (
        EMPTY if leaf == frame else tag("span", "in ", text(names.site(leaf)), more, class_="outer")
    )
    why = why_words(loss.states)
    state = tag("span", text(why), class_="state") if why else EMPTY
    return place + code + state + below
