"""Histograms as tables with a bar in each row."""

from collections.abc import Iterator, Sequence

from markupsafe import Markup

from gilscope.model.gil import GilTotals
from gilscope.model.histogram import OCTAVES, Histogram, total
from gilscope.reports.html.markup import EMPTY, duration, tag

__all__ = ["duration_chart", "durations_section"]


def durations_section(gils: Sequence[GilTotals]) -> Iterator[Markup]:
    """Yield how long waits, drops, holds and switches took, as far as there were any."""
    holds = [gil.holds for gil in gils if gil.holds is not None]
    charts = [
        (heading, histogram)
        for heading, histogram in (
            (
                "Waits",
                total(histogram for gil in gils for histogram in gil.waits.values()),
            ),
            ("Drop latency: request to release", total(gil.drop_latency for gil in gils)),
            ("Holds", total(hold.finished for hold in holds)),
            (
                "Switch latency: release to the next acquisition",
                total(hold.switch_latency for hold in holds),
            ),
        )
        if histogram.count
    ]
    if not charts:
        return
    yield Markup('<section id="durations"><h2>How long it took</h2>')
    yield Markup("<p>Finished ones by duration. Each bound is twice the one before.</p>")
    yield Markup('<div class="charts">')
    for heading, histogram in charts:
        yield from duration_chart(heading, histogram)
    yield Markup("</div></section>")


def duration_chart(heading: str, histogram: Histogram) -> Iterator[Markup]:
    """Yield a table of *histogram*, which is not empty, with a bar in each row."""
    counts = histogram.octaves()
    used = [octave for octave, count in enumerate(counts) if count]
    largest = max(counts)
    mean = duration(histogram.sum_ns // histogram.count)
    half, most = (duration(histogram.quantile_ns(q) or 0) for q in (0.5, 0.99))
    yield Markup(
        '<table class="chart"><caption>{} <span>{}, {} on average, p50 ≈ {}, p99 ≈ {}'
    ).format(heading, histogram.count, mean, half, most)
    yield Markup('</span></caption><thead><tr><th scope="col" class="n">longer than</th>')
    yield Markup(
        '<th scope="col" class="n">up to</th><th scope="col" class="n">number</th><td></td></tr>'
    )
    yield Markup("</thead><tbody>")
    for octave in range(used[0], used[-1] + 1):
        count = counts[octave]
        lower = duration(1 << (octave - 1)) if octave else "0\u00a0ns"
        upper = "any" if octave == OCTAVES - 1 else duration(1 << octave)
        yield tag(
            "tr",
            *(tag("td", cell, class_="n") for cell in (lower, upper, count)),
            tag("td", _bar(count, largest), class_="bar"),
        )
    yield Markup("</tbody></table>")


def _bar(count: int, largest: int) -> Markup:
    if not count:
        return EMPTY
    # Attributes of SVG, because the page's policy forbids styles of single elements.
    return Markup(
        '<svg width="100%" height="10" aria-hidden="true"><rect width="{:.2f}%" height="10"/></svg>'
    ).format(100 * count / largest)
