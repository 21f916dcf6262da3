"""The moment at which threads waited most, drawn: a row a thread, with its holds and its waits."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from markupsafe import Markup

from gilscope.model.gil import Recording
from gilscope.model.timeline import Moment
from gilscope.naming.places import SiteNames
from gilscope.reports.gil.holds_by_waits import Hold, drop_requests, exact_holds, holds_by_waits
from gilscope.reports.gil.words import KIND_NAMES
from gilscope.reports.html.markup import duration, joined, tag, text, time_lost
from gilscope.text.units import counted

__all__ = ["moment_section"]

_MOST_ROWS = 16
_HEIGHT = 22
_NARROW = 0.0004
"""Of the width: two marks that are no farther apart than that are one."""
_LEAST_WIDTH = 0.15
"""In percent: what is shorter can still be seen."""
_STEPS = 4

_KEY = (
    ("hold", "held the GIL"),
    ("hold assumed", "likely held it: nobody waited meanwhile"),
    ("wait", "waited for it"),
    ("asked", "asked the holder to drop it, ≈ by the switch interval"),
    ("unseen", "not looked at: too many waits in that second"),
)


@dataclass(frozen=True, slots=True)
class _Mark:
    """A stretch of a row."""

    began_ns: int
    ended_ns: int
    look: str
    words: str


def moment_section(recording: Recording, names: SiteNames) -> Iterator[Markup]:
    """Yield the picture, and what it is chosen among; nothing where it was not asked for."""
    moment = recording.worst
    if moment is None:
        return
    rows = _rows(recording, moment, names)
    waited_ns = sum(_inside(moment, mark) for row in rows.values() for mark in row["wait"])
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
    shown = sorted(rows, key=lambda tid: _weight(moment, rows[tid]), reverse=True)[:_MOST_ROWS]
    for tid in sorted(shown, key=lambda tid: (roles.get(tid, ""), tid)):
        picture = _picture(moment, rows[tid])
        yield tag("tr", tag("th", text(roles.get(tid, f"thread {tid}")), scope="row"), picture)
    yield Markup('<tr aria-hidden="true"><th></th>{}</tr></tbody></table>').format(_axis(moment))
    yield _key(_looks(moment, rows.values()))
    yield from _notes(recording, moment, len(rows) - len(shown))
    yield Markup("</section>")


def _rows(
    recording: Recording, moment: Moment, names: SiteNames
) -> dict[int, dict[str, list[_Mark]]]:
    rows: dict[int, dict[str, list[_Mark]]] = defaultdict(
        lambda: {"hold": [], "wait": [], "asked": []}
    )
    for hold in _holds(moment):
        look = "hold assumed" if hold.is_assumed else "hold"
        _put(
            rows,
            moment,
            hold.tid,
            "hold",
            _Mark(hold.began_ns, hold.ended_ns, look, _held_words(hold, names)),
        )
    for span in moment.spans:
        if span.kind is not None:
            words = f"waited {duration(span.ended_ns - span.began_ns)} ({KIND_NAMES[span.kind]})"
            if span.stack.frames:
                words += f" in {names.site(span.stack.frames[0])}"
            _put(rows, moment, span.tid, "wait", _Mark(span.began_ns, span.ended_ns, "wait", words))
    gils = recording.observation.totals.gils if recording.observation.process.asks_holder else ()
    interval_ns = max((gil.interval_ns for gil in gils), default=0)
    for tid, at_ns in drop_requests(moment.spans, interval_ns):
        words = "asked the holder to drop the GIL"
        _put(rows, moment, tid, "asked", _Mark(at_ns, at_ns, "asked", words))
    return rows


def _put(
    rows: dict[int, dict[str, list[_Mark]]], moment: Moment, tid: int, kind: str, mark: _Mark
) -> None:
    if _inside(moment, mark) or moment.began_ns <= mark.began_ns == mark.ended_ns < moment.ended_ns:
        rows[tid][kind].append(mark)


def _holds(moment: Moment) -> list[Hold]:
    if moment.has_holds:
        return exact_holds(moment.spans)
    return holds_by_waits(moment.spans, moment.ended_ns)


def _held_words(hold: Hold, names: SiteNames) -> str:
    place = f" in {names.site(hold.stack.frames[0])}" if hold.stack.frames else ""
    return f"held the GIL for {duration(hold.ended_ns - hold.began_ns)}{place}"


def _inside(moment: Moment, mark: _Mark) -> int:
    return max(0, min(mark.ended_ns, moment.ended_ns) - max(mark.began_ns, moment.began_ns))


def _weight(moment: Moment, row: dict[str, list[_Mark]]) -> int:
    return sum(_inside(moment, mark) for mark in (*row["hold"], *row["wait"]))


def _roles(recording: Recording) -> dict[int, str]:
    """Return what to call each thread; those of one role by their numbers too."""
    threads = recording.observation.totals.threads
    number = Counter(thread.role or "starting" for thread in threads)
    return {
        thread.tid: f"{role}, {thread.tid}" if number[role] > 1 else role
        for thread in threads
        for role in (thread.role or "starting",)
    }


def _picture(moment: Moment, row: dict[str, list[_Mark]]) -> Markup:
    shapes = [Markup('<rect class="row" width="100%" height="{}"/>').format(_HEIGHT)]
    for began_ns, ended_ns in moment.unseen:
        shapes.append(_rect(moment, _Mark(began_ns, ended_ns, "unseen", "not looked at"), 1, 20))
    for mark in _merged(moment, row["wait"]):
        shapes.append(_rect(moment, mark, 9, 10))
        shapes.append(_stripes(moment, mark))
    shapes += (_rect(moment, mark, 2, 18) for mark in _merged(moment, row["hold"]))
    shapes += (_line(moment, mark) for mark in row["asked"])
    return Markup(
        '<td><svg width="100%" height="{}" role="img" aria-label="{}">{}</svg></td>'
    ).format(_HEIGHT, _summary(moment, row), joined(shapes))


def _summary(moment: Moment, row: dict[str, list[_Mark]]) -> str:
    held_ns = sum(_inside(moment, mark) for mark in row["hold"])
    waited_ns = sum(_inside(moment, mark) for mark in row["wait"])
    return f"held the GIL for {duration(held_ns)}, waited for {duration(waited_ns)}"


def _merged(moment: Moment, marks: Iterable[_Mark]) -> Iterator[_Mark]:
    """Yield *marks* with those that cannot be told apart in one."""
    close_ns = _NARROW * (moment.ended_ns - moment.began_ns)
    last: _Mark | None = None
    for mark in sorted(marks, key=lambda mark: mark.began_ns):
        is_small = mark.ended_ns - mark.began_ns < close_ns
        if (
            last
            and is_small
            and mark.look == last.look
            and mark.began_ns - last.ended_ns < close_ns
        ):
            last = _Mark(last.began_ns, max(last.ended_ns, mark.ended_ns), last.look, last.words)
            continue
        if last:
            yield last
        last = mark
    if last:
        yield last


def _at(moment: Moment, time_ns: int) -> str:
    """Return where *time_ns* is, in percent of the width, as far as it is in the picture."""
    whole_ns = max(1, moment.ended_ns - moment.began_ns)
    return f"{100 * min(1, max(0, (time_ns - moment.began_ns) / whole_ns)):.3f}%"


def _rect(moment: Moment, mark: _Mark, y: int, height: int) -> Markup:
    whole_ns = max(1, moment.ended_ns - moment.began_ns)
    return Markup(
        '<rect class="{}" x="{}" y="{}" width="{:.3f}%" height="{}"><title>{}</title></rect>'
    ).format(
        mark.look,
        _at(moment, mark.began_ns),
        y,
        max(_LEAST_WIDTH, 100 * _inside(moment, mark) / whole_ns),
        height,
        text(mark.words),
    )


def _stripes(moment: Moment, mark: _Mark) -> Markup:
    # A pattern would need an id, of which there is one on a page for each process.
    return Markup(
        '<line class="stripes" x1="{}" x2="{}" y1="14" y2="14" stroke-dasharray="1.5 3.5" '
        'pointer-events="none"/>'
    ).format(_at(moment, mark.began_ns), _at(moment, mark.ended_ns))


def _line(moment: Moment, mark: _Mark) -> Markup:
    at = _at(moment, mark.began_ns)
    return Markup(
        '<line class="asked" x1="{0}" x2="{0}" y1="1" y2="21"><title>{1}</title></line>'
    ).format(at, mark.words)


def _axis(moment: Moment) -> Markup:
    whole_ns = moment.ended_ns - moment.began_ns
    labels = []
    for step in range(_STEPS + 1):
        anchor = "start" if step == 0 else "end" if step == _STEPS else "middle"
        labels.append(
            Markup('<text class="axis" x="{}%" y="13" text-anchor="{}">{}</text>').format(
                100 * step // _STEPS, anchor, duration(whole_ns * step // _STEPS) if step else 0
            )
        )
    return Markup('<td><svg width="100%" height="18">{}</svg></td>').format(joined(labels))


def _looks(moment: Moment, rows: Iterable[dict[str, list[_Mark]]]) -> set[str]:
    drawn = {mark.look for row in rows for marks in row.values() for mark in marks}
    return drawn | {"unseen"} if moment.unseen else drawn


def _key(looks: set[str]) -> Markup:
    entries = []
    for look, words in _KEY:
        if look in looks:
            entries.append(
                Markup('<li><svg width="28" height="14" aria-hidden="true">{}</svg>{}</li>').format(
                    _sample(look), words
                )
            )
    return Markup('<ul class="key">{}</ul>').format(joined(entries))


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
