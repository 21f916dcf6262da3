"""The part of the landing page that is about STM logs."""

from collections.abc import Iterator, Mapping, Sequence

from markupsafe import Markup

from gilscope.reports.html.markup import EMPTY, joined, tag, text
from gilscope.reports.stm_log.words import place_words
from gilscope.series.recent import Curve
from gilscope.stm_log.sums import FollowedLog, Loss, Place
from gilscope.text.units import megabytes, percent, seconds
from gilscope.web.page.sparkline import lost_cell
from gilscope.web.page.table import table

__all__ = ["stm_section"]

_COLUMNS = (
    ("log", ""),
    ("files", "n"),
    ("size", "n"),
    ("lag", "n"),
    ("commits", "n"),
    ("aborts", "n"),
    ("lost lately", "n c"),
    ("lost in aborts", "n"),
    ("paused for conflicts", "n"),
    ("worst places", "s"),
)

_MOST_PLACES = 3

_CAPTION = (
    "Lost lately: time that conflicts cost in the last ten seconds or so by the time that passed, "
    "and its curve over five minutes. A program writes its log in blocks, and so the curve moves. "
    "All other figures: in all runs since gilscope began."
)


def stm_section(logs: Sequence[FollowedLog], curves: Mapping[str, Curve]) -> Iterator[Markup]:
    """Yield the section as lines of HTML, the log that has lost most first."""
    yield Markup("<h2>STM logs</h2>")
    if not logs:
        yield Markup(
            "<p>None yet: no file matches. One that appears is read from its beginning.</p>"
        )
        return
    ranked = sorted(logs, key=lambda log: -log.lost_ns)
    rows = [tuple(_cells(log, curves.get(log.name))) for log in ranked]
    yield from table("logs", _COLUMNS, rows, _CAPTION)


def _cells(log: FollowedLog, curve: Curve | None) -> Iterator[str]:
    sums = log.sums
    ended = sums.commits + sums.aborts
    problem = tag("span", text(log.problem), class_="bad")
    yield text(log.name) + (Markup("<br>") + problem if log.problem else EMPTY)
    yield str(log.files) if log.files else Markup('<span class="quiet">ended</span>')
    yield megabytes(log.size)
    yield f"{log.lag_bytes} bytes"
    yield str(sums.commits)
    yield f"{sums.aborts} ({percent(sums.aborts / ended)})" if ended else "0"
    yield lost_cell(curve)
    yield seconds(sum(loss.lost_ns for loss in sums.losses.values()))
    yield seconds(sum(loss.paused_ns for loss in sums.losses.values()))
    ranked = sorted(sums.losses.items(), key=lambda item: (-item[1].ns, item[0]))
    yield joined(map(_place, ranked[:_MOST_PLACES]), Markup("<br>"))


def _place(item: tuple[Place, Loss]) -> Markup:
    place, loss = item
    kind, _, _ = place
    figures = Markup("{} lost, {} paused ({}x {})").format(
        seconds(loss.lost_ns), seconds(loss.paused_ns), loss.count, text(kind)
    )
    return joined((figures, *map(text, place_words(place))), Markup("<br>"))
