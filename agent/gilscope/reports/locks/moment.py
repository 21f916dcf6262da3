"""The moment at which threads waited most for locks, drawn: a row a thread, one for the world."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from markupsafe import Markup

from gilscope.model.locks import LockKind, LockMoment, LockRecording, LockSpan, StopSpan
from gilscope.naming.lock_words import CAUSE_WORDS, what_words
from gilscope.naming.places import SiteNames
from gilscope.reports.html.markup import clean, duration, tag, text, time_lost
from gilscope.reports.html.strip import Mark, Strip, key
from gilscope.text.units import counted

__all__ = ["moment_section"]

_MOST_ROWS = 16
_STOPS = (LockKind.WORLD_STOP, LockKind.WORLD_STOP_REQUEST)

_KEY = (
    ("wait", "waited for a lock"),
    ("stopped", "waited for a stop of the world: its end, or the other threads"),
    ("stopping", "a thread had asked all others to stop"),
    ("stands", "all had stopped"),
    ("unseen", "not looked at: too many waits in that second"),
)


def moment_section(recording: LockRecording, names: SiteNames) -> Iterator[Markup]:
    """Yield the picture; nothing where it was not asked for, or nobody waited."""
    moment, totals = recording.worst, recording.observation.totals
    if moment is None or totals is None:
        return
    strip = Strip(moment.began_ns, moment.ended_ns)
    rows: dict[int, list[Mark]] = defaultdict(list)
    for span in moment.waits:
        rows[span.tid].append(_wait(span, names))
    waited = {tid: sum(map(strip.inside_ns, marks)) for tid, marks in rows.items()}
    yield Markup('<section id="lock-moment"><h2>The worst {}</h2>').format(
        duration(moment.ended_ns - moment.began_ns)
    )
    yield Markup("<p>When threads waited most for locks: {} in all, by {}, {} into the ").format(
        time_lost(sum(waited.values())),
        counted(len(rows), "thread"),
        time_lost(max(0, moment.began_ns - recording.observation.since_ns)),
    )
    yield Markup('recording. Each row is a thread.</p><table class="moment"><tbody>')
    if moment.stops:
        heading = tag("th", "stops of the world", scope="row")
        yield tag("tr", heading, _world(moment, strip, names))
    called = {thread.tid: thread.name for thread in totals.threads}
    shown = sorted(rows, key=lambda tid: (-waited[tid], tid))[:_MOST_ROWS]
    for tid in sorted(shown):
        heading = tag("th", text(f"{clean(called.get(tid) or 'thread')}, {tid}"), scope="row")
        summary = f"waited for {duration(waited[tid])}"
        yield tag("tr", heading, _row(moment, strip, rows[tid], summary))
    yield Markup('<tr aria-hidden="true"><th></th>{}</tr></tbody></table>').format(strip.axis())
    drawn = {mark.look for marks in rows.values() for mark in marks}
    drawn |= {_look(stop) for stop in moment.stops}
    drawn |= {"unseen"} if moment.unseen else set()
    yield key((_sample(look), words) for look, words in _KEY if look in drawn)
    yield from _notes(recording, len(rows) - len(shown))
    yield Markup("</section>")


def _wait(span: LockSpan, names: SiteNames) -> Mark:
    words = f"waited {duration(span.ended_ns - span.began_ns)} for {what_words(span)}"
    if span.stack.frames:
        words += f" in {names.site(span.stack.frames[0])}"
    if span.held.frames:
        words += f", held by {names.site(span.held.frames[0])}"
    if span.released.frames:
        ended = "asked for" if span.kind is LockKind.WORLD_STOP else "released"
        words += f", {ended} by {names.site(span.released.frames[0])}"
    look = "stopped" if span.kind in _STOPS else "wait"
    return Mark(span.began_ns, span.ended_ns, look, words)


def _row(moment: LockMoment, strip: Strip, marks: Sequence[Mark], summary: str) -> Markup:
    shapes = _unseen(moment, strip)
    for mark in strip.merged(marks):
        shapes.append(strip.rect(mark, 9, 10))
        if mark.look == "wait":
            shapes.append(strip.stripes(mark))
    return strip.row(shapes, summary)


def _world(moment: LockMoment, strip: Strip, names: SiteNames) -> Markup:
    marks = [_stop(stop, names) for stop in moment.stops]
    shapes = _unseen(moment, strip)
    shapes += (strip.rect(mark, 2, 18) for mark in strip.merged(marks))
    took_ns = sum(map(strip.inside_ns, marks))
    return strip.row(shapes, f"stopped, or about to be, for {duration(took_ns)}")


def _stop(stop: StopSpan, names: SiteNames) -> Mark:
    took = duration(stop.ended_ns - stop.began_ns)
    how = f"all had stopped for {took}" if stop.stands else f"{took} until all had stopped"
    words = f"{how}, for {CAUSE_WORDS[stop.cause]}"
    if stop.stack.frames:
        words += f", asked for by {names.site(stop.stack.frames[0])}"
    return Mark(stop.began_ns, stop.ended_ns, _look(stop), words)


def _look(stop: StopSpan) -> str:
    return "stands" if stop.stands else "stopping"


def _unseen(moment: LockMoment, strip: Strip) -> list[Markup]:
    return [
        strip.rect(Mark(began_ns, ended_ns, "unseen", "not looked at"), 1, 20)
        for began_ns, ended_ns in moment.unseen
    ]


def _sample(look: str) -> Markup:
    shape = Markup('<rect class="{}" x="1" y="2" width="26" height="10"/>').format(look)
    if look != "wait":
        return shape
    return shape + Markup(
        '<line class="stripes" x1="1" x2="27" y1="7" y2="7" stroke-dasharray="1.5 3.5"/>'
    )


def _notes(recording: LockRecording, left_out: int) -> Iterator[Markup]:
    notes = []
    if left_out:
        notes.append(f"{counted(left_out, 'more thread')} waited, and for less.")
    cut = 0 if recording.worst is None else recording.worst.cut_seconds
    if cut:
        notes.append(
            f"In {counted(cut, 'second')} there were too many waits to look at one by one: the "
            "moment is chosen among what was sent of them, and the rest of the time."
        )
    dropped = 0 if recording.worst is None else recording.worst.dropped
    if dropped:
        notes.append(f"{counted(dropped, 'more wait')} could not be kept, and may have been worse.")
    if not recording.observation.is_whole:
        notes.append("Seen in windows: in what is empty nobody may have been looking.")
    if notes:
        yield Markup('<p class="quiet">{}</p>').format(" ".join(notes))
