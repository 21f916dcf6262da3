"""What ``stm follow`` prints of an interval."""

from collections.abc import Iterator, Mapping

from gilscope.reports.stm_log.words import kind_name, place_words
from gilscope.stm_log.interval import Interval, LogChange, costliest
from gilscope.text.ansi import Paint
from gilscope.text.printable import printable
from gilscope.text.units import counted, percent, seconds

__all__ = ["MOST_PLACES", "render"]

MOST_PLACES = 3


def render(seen: Interval, clock: str, most: int = MOST_PLACES, *, colour: bool = False) -> str:
    """Return the lines for *seen*, which ended at *clock*, with *most* places of each log."""
    paint = Paint(on=colour)
    lines = [line for change in seen.changes for line in _change(change, clock, most, paint)]
    if not lines:
        return f"{clock}  {_nothing_in(len(seen.changes))}\n"
    return "\n".join(lines) + "\n"


def _nothing_in(logs: int) -> str:
    if not logs:
        return "no log yet"
    return f"nothing new in {counted(logs, 'log')}"


def _change(change: LogChange, clock: str, most: int, paint: Paint) -> Iterator[str]:
    since, log = change.since, change.log
    if not (change.read_bytes or since.errors or log.lag_bytes):
        return
    number = since.commits + since.aborts
    share = f" ({percent(since.aborts / number)})" if number else ""
    yield paint.bold(
        f"{clock}  {printable(log.name)}: {since.commits} committed, {since.aborts} aborted{share}"
    )
    yield f"  {change.read_bytes} bytes read, {log.lag_bytes} bytes behind"
    lost_ns: dict[str, int] = {}
    for (kind, _, _), loss in since.losses.items():
        lost_ns[kind] = lost_ns.get(kind, 0) + loss.ns
    yield from _by_kind("lost:", lost_ns)
    yield from _by_kind("waits:", since.waits_ns)
    for place, loss in costliest(since, most):
        yield (
            f"  {seconds(loss.lost_ns)} lost in aborts, {seconds(loss.paused_ns)} paused "
            f"({loss.count}x {place[0]})"
        )
        for words in place_words(place):
            yield f"    {words}"
    for reason, count in since.errors.items():
        problem = f": {printable(log.problem)}" if log.problem else ""
        yield paint.red(f"  {count}x {reason.replace('_', ' ')}{problem}")


def _by_kind(head: str, times_ns: Mapping[str, int]) -> Iterator[str]:
    dear = sorted(times_ns.items(), key=lambda item: (-item[1], item[0]))
    words = ", ".join(f"{seconds(ns)} {kind_name(kind)}" for kind, ns in dear if ns)
    if words:
        yield f"  {head} {words}"
