"""The moment at which threads waited most, drawn: a row a thread, with its holds and its waits."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

from markupsafe import Markup

from gilscope.model.gil import Recording
from gilscope.model.timeline import Moment
from gilscope.naming.places import SiteNames
from gilscope.reports.gil.holds_by_waits import Hold, drop_requests, exact_holds, holds_by_waits
from gilscope.reports.gil.words import KIND_NAMES
from gilscope.reports.html.markup import duration, tag, text, time_lost
from gilscope.reports.html.strip import Mark, Strip, key
from gilscope.text.units import counted

__all__ = ["moment_section"]

_MOST_ROWS = 16

_KEY = (
    ("hold", "held the GIL"),
    ("hold assumed", "likely held it: nobody waited meanwhile"),
    ("wait", "waited for it"),
    ("asked", "asked the holder to drop it, ≈ by the switch interval"),
    ("unseen", "not looked at: too many waits in that second"),
)


def moment_section(recording: Recording, names: SiteNames) -> Iterator[Markup]:
    """Yield the picture, and what it is chosen among; nothing where it was not asked for."""
    moment = recording.worst
    if moment is None:
        return
    strip = Strip(moment.began_ns, moment.ended_ns)
    rows = _rows(recording, moment, strip, names)
    waited_ns = sum(strip.inside_ns(mark) for row in rows.values() for mark in row["wait"])
    waiting = sum(bool(row["wait"]) for row in rows.values())
    yield Markup('<section id="moment"><h2>The worst {}</h2>').format(
        duration(moment.ended_ns - moment.began_ns)
    )
    yield Markup("<p>When threads waited most: {} in all, by {}, {} into the recording.").format(
        time_lost(waited_ns),
        counted(waiting, "thread"),
        time_lost(max(0, moment.began_ns - recording.observation.since_ns)),
    )
    yield Markup(" Each row is a thread.</p>")
    yield Markup('<table class="moment"><tbody>')
    roles = _roles(recording)
    shown = sorted(rows, key=lambda tid: _weight(strip, rows[tid]), reverse=True)[:_MOST_ROWS]
    for tid in sorted(shown, key=lambda tid: (roles.get(tid, ""), tid)):
        picture = _picture(moment, strip, rows[tid])
        yield tag("tr", tag("th", text(roles.get(tid, f"thread {tid}")), scope="row"), picture)
    yield Markup('<tr aria-hidden="true"><th></th>{}</tr></tbody></table>').format(strip.axis())
    yield _key(_looks(moment, rows.values()))
    yield from _notes(recording, moment, len(rows) - len(shown))
    yield Markup("</section>")


def _rows(
    recording: Recording, moment: Moment, strip: Strip, names: SiteNames
) -> dict[int, dict[str, list[Mark]]]:
    rows: dict[int, dict[str, list[Mark]]] = defaultdict(
        lambda: {"hold": [], "wait": [], "asked": []}
    )
    for hold in _holds(moment):
        look = "hold assumed" if hold.is_assumed else "hold"
        _put(
            rows,
            strip,
            hold.tid,
            "hold",
            Mark(hold.began_ns, hold.ended_ns, look, _held_words(hold, names)),
        )
    for span in moment.spans:
        if span.kind is not None:
            words = f"waited {duration(span.ended_ns - span.began_ns)} ({KIND_NAMES[span.kind]})"
            if span.stack.frames:
                words += f" in {names.site(span.stack.frames[0])}"
            _put(rows, strip, span.tid, "wait", Mark(span.began_ns, span.ended_ns, "wait", words))
    gils = recording.observation.totals.gils if recording.observation.process.asks_holder else ()
    interval_ns = max((gil.interval_ns for gil in gils), default=0)
    for tid, at_ns in drop_requests(moment.spans, interval_ns):
        words = "asked the holder to drop the GIL"
        _put(rows, strip, tid, "asked", Mark(at_ns, at_ns, "asked", words))
    return rows


def _put(
    rows: dict[int, dict[str, list[Mark]]], strip: Strip, tid: int, kind: str, mark: Mark
) -> None:
    if strip.shows(mark):
        rows[tid][kind].append(mark)


def _holds(moment: Moment) -> list[Hold]:
    if moment.has_holds:
        return exact_holds(moment.spans)
    return holds_by_waits(moment.spans, moment.ended_ns)


def _held_words(hold: Hold, names: SiteNames) -> str:
    place = f" in {names.site(hold.stack.frames[0])}" if hold.stack.frames else ""
    return f"held the GIL for {duration(hold.ended_ns - hold.began_ns)}{place}"


def _weight(strip: Strip, row: dict[str, list[Mark]]) -> int:
    return sum(strip.inside_ns(mark) for mark in (*row["hold"], *row["wait"]))


def _roles(recording: Recording) -> dict[int, str]:
    """Return what to call each thread; those of one role by their numbers too."""
    threads = recording.observation.totals.threads
    number = Counter(thread.role or "starting" for thread in threads)
    return {
        thread.tid: f"{role}, {thread.tid}" if number[role] > 1 else role
        for thread in threads
        for role in (thread.role or "starting",)
    }


def _picture(moment: Moment, strip: Strip, row: dict[str, list[Mark]]) -> Markup:
    shapes = [
        strip.rect(Mark(began_ns, ended_ns, "unseen", "not looked at"), 1, 20)
        for began_ns, ended_ns in moment.unseen
    ]
    for mark in strip.merged(row["wait"]):
        shapes.append(strip.rect(mark, 9, 10))
        shapes.append(strip.stripes(mark))
    shapes += (strip.rect(mark, 2, 18) for mark in strip.merged(row["hold"]))
    shapes += (strip.line(mark) for mark in row["asked"])
    return strip.row(shapes, _summary(strip, row))


def _summary(strip: Strip, row: dict[str, list[Mark]]) -> str:
    held_ns = sum(strip.inside_ns(mark) for mark in row["hold"])
    waited_ns = sum(strip.inside_ns(mark) for mark in row["wait"])
    return f"held the GIL for {duration(held_ns)}, waited for {duration(waited_ns)}"


def _looks(moment: Moment, rows: Iterable[dict[str, list[Mark]]]) -> set[str]:
    drawn = {mark.look for row in rows for marks in row.values() for mark in marks}
    return drawn | {"unseen"} if moment.unseen else drawn


def _key(looks: set[str]) -> Markup:
    return key((_sample(look), words) for look, words in _KEY if look in looks)


def _sample(look: str) -> Markup:
    if look == "asked":
        return Markup('<line class="asked" x1="14" x2="14" y1="0" y2="14"/>')
    shape = Markup('<rect class="{}" x="1" y="2" width="26" height="10"/>').format(look)
    if look != "wait":
        return shape
    return shape + Markup(
        '<line class="stripes" x1="1" x2="27" y1="7" y2="7" stroke-dasharray="1.5 3.5"/>'
    )


def _notes(recording: Recording, moment: Moment, left_out: int) -> Iterator[Markup]:
    notes = []
    if left_out:
        notes.append(f"{counted(left_out, 'more thread')} waited or held it, and had less of both.")
    if moment.has_holds:
        notes.append("Holds were seen; short ones may be left out.")
    else:
        notes.append(
            "≈ Who held it is inferred from waits: a thread that gets it at the end of a wait has "
            "it until another one gets it, or until it waits again."
        )
    finished = sum(thread.waits for thread in recording.observation.totals.threads)
    among = min(finished, moment.chosen_among)
    notes.append(
        f"Chosen among {among} of {counted(finished, 'finished wait')}"
        + ("." if among == finished else "; the others were too many to be looked at one by one.")
    )
    yield Markup('<p class="quiet">{}</p>').format(" ".join(notes))
