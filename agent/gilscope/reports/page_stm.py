"""The part of the landing page that is about STM logs."""

from collections.abc import Iterator, Sequence
from html import escape

from gilscope.reports.stm_words import place_words
from gilscope.reports.units import megabytes, percent, seconds
from gilscope.stm.sums import FollowedLog

__all__ = ["stm_section"]

_COLUMNS = (
    ("log", ""),
    ("files", "n"),
    ("size", "n"),
    ("lag", "n"),
    ("commits", "n"),
    ("aborts", "n"),
    ("lost in aborts", "n"),
    ("paused for conflicts", "n"),
    ("worst place", "s"),
)


def stm_section(logs: Sequence[FollowedLog]) -> Iterator[str]:
    """Yield the section as lines of HTML, the log that has lost most first."""
    yield "<h2>STM logs</h2>"
    if not logs:
        yield "<p>None yet.</p>"
        return
    yield '<table class="pairs">'
    head = "".join(f'<th class="{kind}">{name}</th>' for name, kind in _COLUMNS)
    yield f"<tr>{head}</tr>"
    for log in sorted(logs, key=lambda log: -_lost_ns(log)):
        cells = "".join(
            f'<td class="{kind}" data-name="{name}">{cell}</td>'
            for cell, (name, kind) in zip(_cells(log), _COLUMNS, strict=True)
        )
        yield f"<tr>{cells}</tr>"
    yield "</table>"


def _cells(log: FollowedLog) -> Iterator[str]:
    sums = log.sums
    ended = sums.commits + sums.aborts
    problem = f'<br><span class="bad">{escape(log.problem)}</span>' if log.problem else ""
    yield escape(log.name) + problem
    yield str(log.files) if log.files else '<span class="quiet">ended</span>'
    yield megabytes(log.size)
    yield f"{log.lag_bytes} bytes"
    yield str(sums.commits)
    yield f"{sums.aborts} ({percent(sums.aborts / ended)})" if ended else "0"
    yield seconds(sum(loss.lost_ns for loss in sums.losses.values()))
    yield seconds(sum(loss.paused_ns for loss in sums.losses.values()))
    yield _worst(log)


def _worst(log: FollowedLog) -> str:
    if not log.sums.losses:
        return ""
    place, loss = max(log.sums.losses.items(), key=lambda item: (item[1].ns, item[0]))
    kind, _, _ = place
    return (
        f"{seconds(loss.lost_ns)} lost, {seconds(loss.paused_ns)} paused "
        f"({loss.count}x {escape(kind)})<br>"
        + "<br>".join(escape(line) for line in place_words(place))
    )


def _lost_ns(log: FollowedLog) -> int:
    return sum(loss.ns for loss in log.sums.losses.values())
