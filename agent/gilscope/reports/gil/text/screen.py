"""The answer on one screen: how bad it is, whose code keeps the GIL, who waits, what to do."""

from collections.abc import Iterator, Sequence
from itertools import chain

from gilscope.model.gil import Recording, Tally
from gilscope.model.kinds import Kind
from gilscope.model.session import Session
from gilscope.naming.hold_states import why_in_short
from gilscope.naming.places import SiteNames
from gilscope.naming.python import python_of
from gilscope.reports.gil.text.convoy import behind_words, convoy_advice, queueing_lines
from gilscope.reports.gil.text.held_by import computing_line, held_by_lines
from gilscope.reports.gil.text.hog import hog_lines
from gilscope.reports.gil.text.holds import cost_line, hold_summary
from gilscope.reports.gil.text.routes import route_words
from gilscope.reports.gil.text.ticks import failed_wakeup_lines, no_lock_lines, tick_advice
from gilscope.reports.gil.text.whose_code import Sources, Whole, libraries_alone_lines
from gilscope.reports.gil.words import KIND_NAMES, base_words, lost_words, process_words
from gilscope.series.holders import HolderLoss, losses_by_holder
from gilscope.text.ansi import Paint
from gilscope.text.printable import printable
from gilscope.text.units import counted, percent, seconds, short_duration
from gilscope.verdict.base_rate import base_rate
from gilscope.verdict.change_words import advice_lines
from gilscope.verdict.degree import Degree
from gilscope.verdict.estimates import about, are_shared_out
from gilscope.verdict.no_contention import no_contention
from gilscope.verdict.role_losses import role_losses
from gilscope.verdict.verdict import Verdict, verdict_of

__all__ = ["MOST_LINES", "badness", "render", "verdict_lines"]

MOST_LINES = 25
"""Fewer than a terminal has, with the command and the next prompt."""

_MOST_ROWS = 3
"""In each table of one process."""
_ROWS_OF_SEVERAL = 2
_MOST_REFUSED = 1
_MOST_OF_HOG = 4
"""Lines."""
_LEAST_SHARE = 0.01
_LONGEST = 78
"""Of a line of source code, with the place below it."""
_DEGREE_WORDS = {Degree.SEVERE: "Severe", Degree.MILD: "Mild", Degree.NONE: "None"}


def render(session: Session, *, colour: bool = False) -> str:
    """Return the answer to *session*; *colour* adds terminal colours."""
    lines = _lines(session, Paint(on=colour))
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _lines(session: Session, paint: Paint) -> Iterator[str]:
    valid = [each for each in session.recordings if not each.observation.invalid]
    all_ns = sum(each.observation.totals.wait_ns for each in valid)
    told = _told(valid, all_ns)
    is_one = len(told) == 1
    yield from _heading(session, told[0] if is_one else None, paint)
    if told:
        verdicts = [(verdict_of(recording), recording) for recording in told]
        verdict, worst = max(verdicts, key=badness)
        rows = _MOST_ROWS if is_one else _ROWS_OF_SEVERAL
        yield ""
        lost_ns = sum(recording.observation.totals.wait_ns for recording in told)
        yield from verdict_lines(verdict, worst, lost_ns, paint, is_one=is_one)
        if verdict.degree is not Degree.NONE:
            if not is_one:
                yield from _process_lines(told, lost_ns, rows, paint)
            yield from _loss_lines(told, lost_ns, rows, paint)
        else:
            held_by = tuple(held_by_lines(worst, paint))[: 1 + 2 * rows]
            yield from ("", *held_by) if held_by else ()
    yield ""
    quiet = [] if told is valid else [each for each in valid if each is not told[0]]
    yield from _closing(session, told, quiet)


def _told(valid: Sequence[Recording], all_ns: int) -> Sequence[Recording]:
    """Return those that have more than a line: where one has lost it all, the others have not.

    Where that is next to nothing, any of them may be the one that computes.
    """
    losing = [each for each in valid if each.observation.totals.wait_ns > _LEAST_SHARE * all_ns]
    if len(losing) != 1 or verdict_of(losing[0]).degree is Degree.NONE:
        return valid
    return losing


def badness(pair: tuple[Verdict, Recording]) -> tuple[Degree, bool, float, int]:
    """Return by what the worst of several processes is found: the largest is it."""
    verdict, recording = pair
    samples = recording.observation.totals.holder_samples
    held_ns = 0 if samples is None else sum(held.held_ns for held in samples.holders)
    waiting = 0.0 if verdict.degree is Degree.NONE else verdict.waiting
    return verdict.degree, verdict.hog is not None, waiting, held_ns


def _heading(session: Session, only: Recording | None, paint: Paint) -> Iterator[str]:
    mode = f"{seconds(session.duration_ns)} in {session.mode} mode"
    number = len(session.recordings) + session.left_out
    if only is not None:
        process = only.observation.process
        end = ", until the process ended" if only.observation.ended else ""
        who = f"{printable(process.name)}, pid {process.pid}, {python_of(process)}"
        yield f"{paint.bold(who)}: {mode}{end}"
    else:
        yield f"{paint.bold(counted(number, 'process', 'processes') + ' with a GIL')}: {mode}"
    invalid = [each.observation for each in session.recordings if each.observation.invalid]
    for seen in invalid[:_MOST_REFUSED]:
        yield paint.red(f"Nothing is reported of pid {seen.process.pid}, because {seen.invalid}.")


def verdict_lines(
    verdict: Verdict, recording: Recording, lost_ns: int, paint: Paint, *, is_one: bool
) -> Iterator[str]:
    """Yield how bad it is in *recording*, and why; unless it *is_one* alone, with its name.

    *lost_ns* is what all that are told have lost.
    """
    who = "" if is_one else f" in {process_words(recording)}"
    degree = f"{_DEGREE_WORDS[verdict.degree]}{who}"
    if verdict.hog is not None:
        first, *others = hog_lines(recording, Paint(on=False))
        yield paint.red(f"{degree}: {first[:1].lower()}{first[1:]}")
        yield from (line.strip() for line in others[:_MOST_OF_HOG])
        return
    if verdict.convoy is not None:
        convoy = f"{degree}: convoy: {printable(verdict.convoy.role)}"
        yield paint.red(convoy) if verdict.degree is Degree.SEVERE else paint.bold(convoy)
        yield from queueing_lines(verdict.convoy, recording)
        behind = behind_words(verdict.convoy)
        if behind:
            yield f"Behind {behind}."
        yield from convoy_advice(recording, verdict.convoy)
        yield from failed_wakeup_lines(recording)
        yield from tick_advice(recording)
        return
    if verdict.degree is Degree.NONE:
        waited = f"{seconds(lost_ns)} lost waiting" if lost_ns else "no thread had to wait"
        yield paint.bold(f"{_DEGREE_WORDS[verdict.degree]}: {waited} for the GIL.")
        if not is_one:
            yield f"The one that held its GIL longest is {process_words(recording)}."
        yield from hold_summary(recording, paint)
        yield from no_lock_lines(recording)
        yield from no_contention(recording.observation.totals.holder_samples)
        return
    words = f"{degree}: at any moment {verdict.waiting:.2f} threads were waiting for the GIL."
    yield paint.red(words) if verdict.degree is Degree.SEVERE else paint.bold(words)
    yield from hold_summary(recording, Paint(on=False))
    if _is_mostly_preemption(recording):
        yield "Threads that compute take turns: together they are as fast as one of them."
    totals = recording.observation.totals
    losses = losses_by_holder(totals.edges, recording.application, totals.held_up)
    yield from advice_lines(recording, losses[0].states if losses else ())
    yield from failed_wakeup_lines(recording)
    yield from tick_advice(recording)


def _is_mostly_preemption(recording: Recording) -> bool:
    losses = role_losses([recording])
    preempted_ns = sum(loss.lost.get(Kind.PREEMPTION, Tally()).ns for loss in losses)
    return 2 * preempted_ns > recording.observation.totals.wait_ns


def _process_lines(
    recordings: Sequence[Recording], lost_ns: int, rows: int, paint: Paint
) -> Iterator[str]:
    losing = [each for each in recordings if each.observation.totals.wait_ns]
    yield ""
    yield paint.bold(f"{seconds(lost_ns)} lost waiting for the GIL, in {len(losing)} of them")
    for recording in losing[:rows]:
        wait_ns = recording.observation.totals.wait_ns
        yield f"{percent(wait_ns / lost_ns):>7} {seconds(wait_ns):>9}  {process_words(recording)}"
    rest = losing[rows:]
    if rest:
        rest_ns = sum(recording.observation.totals.wait_ns for recording in rest)
        more = counted(len(rest), "more process", "more processes")
        yield f"{percent(rest_ns / lost_ns):>7} {seconds(rest_ns):>9}  in {more}"


def _loss_lines(
    recordings: Sequence[Recording], lost_ns: int, rows: int, paint: Paint
) -> Iterator[str]:
    edges = chain.from_iterable(each.observation.totals.edges for each in recordings)
    held_up = chain.from_iterable(each.observation.totals.held_up for each in recordings)
    losses = losses_by_holder(edges, recordings[0].application, held_up)
    noted_ns = max(lost_ns, sum(loss.lost.ns for loss in losses))
    if losses:
        waits = sum(t.waits for each in recordings for t in each.observation.totals.threads)
        yield ""
        yield paint.bold("Whose code kept the GIL") + (
            f", of {seconds(lost_ns)} lost in {counted(waits, 'wait')}{_of_acquires(recordings)}"
        )
        # Of several processes there is more to tell, and a line of source code each is too much.
        sources = recordings[0].sources if len(recordings) == 1 else {}
        totals = [each.observation.totals for each in recordings]
        whole = Whole(noted_ns, about(is_estimate=any(map(are_shared_out, totals))))
        yield from _place_lines(losses, whole, rows, sources, paint)
        yield from libraries_alone_lines(losses)
    yield from _request_lines(recordings)
    yield ""
    yield paint.bold("Who waited most")
    for role in role_losses(recordings)[:rows]:
        threads = f" ({role.threads} threads)" if role.threads > 1 else ""
        mostly = "" if len(role.lost) == 1 else "mostly "
        yield (
            f"{percent(role.whole.ns / lost_ns):>7} {seconds(role.whole.ns):>9}  "
            f"{paint.bold(printable(role.role))}{threads}, {mostly}{KIND_NAMES[role.kind]}"
        )


def _request_lines(recordings: Sequence[Recording]) -> Iterator[str]:
    """Yield what requests have waited, if the only process says which its threads serve."""
    traces = recordings[0].observation.totals.traces if len(recordings) == 1 else None
    if traces is None or not traces.worst:
        return
    worst = traces.worst[0]
    mean = short_duration(traces.wait_ns // traces.number)
    yield ""
    yield (
        f"{counted(traces.number, 'request')} waited, {mean} each; the worst "
        f"{short_duration(worst.wait_ns)}: trace {worst.trace_id}."
    )
    route = route_words(recordings[0])
    if route is not None:
        yield route


def _of_acquires(recordings: Sequence[Recording]) -> str:
    only = recordings[0]
    base = base_rate(only.observation.totals, only.duration_ns) if len(recordings) == 1 else None
    return "" if base is None else f", {base_words(base)}"


def _place_lines(
    losses: Sequence[HolderLoss], whole: Whole, rows: int, sources: Sources, paint: Paint
) -> Iterator[str]:
    names = SiteNames()
    least_ns = _LEAST_SHARE * whole.lost_ns
    shown = [loss for loss in losses[:rows] if loss.lost.ns >= least_ns] or losses[:1]
    for loss in shown:
        frame, why = loss.frame, why_in_short(loss.states)
        yield (
            f"{whole.share(loss.lost.ns):>7} {whole.time(loss.lost.ns):>9}  "
            f"{paint.bold(printable(names.owner(frame, loss.costliest)))}"
            f"{f', {why}' if why else ''}"
        )
        source = "" if frame is None else sources.get((frame.file, frame.line or 0), "")
        inner = loss.costliest.frames[:1]
        below = f"in {printable(names.site(inner[0]))}" if inner and inner[0] != frame else ""
        source = printable(source)[:_LONGEST]
        # A line that wraps would be two.
        has_room = len(source) + len(below) < _LONGEST
        words = "  ".join(filter(None, (source, below))) if has_room else source
        if words and sources:
            yield f"{'':>21}{paint.dim(words)}"


def _closing(
    session: Session, told: Sequence[Recording], quiet: Sequence[Recording]
) -> Iterator[str]:
    if quiet:
        more = f", and {len(quiet) - 1} more" if len(quiet) > 1 else ""
        has_lost = any(each.observation.totals.wait_ns for each in quiet)
        much = f"less than {percent(_LEAST_SHARE)} of all" if has_lost else "nothing"
        yield f"Lost {much}: {process_words(quiet[0])}{more}."
        yield from computing_line(quiet)
    for refusal in session.refusals[:_MOST_REFUSED]:
        yield (
            f"Not traced: {printable(refusal.name)}, pid {refusal.pid}: "
            f"{printable(refusal.reason)}."
        )
    if len(told) == 1:
        yield from cost_line(told[0])
    lost: dict[str, int] = {}
    for recording in told:
        for reason, count in recording.observation.totals.lost_events.items():
            lost[reason] = lost.get(reason, 0) + count
    if lost:
        reason = max(lost, key=lambda each: lost[each])
        more = f", and {counted(len(lost) - 1, 'more reason')}" if len(lost) > 1 else ""
        yield f"Not counted in full: {lost_words(reason, lost[reason])}{more}."
    yield _next(told)


def _next(told: Sequence[Recording]) -> str:
    if len(told) == 1 and not told[0].observation.ended:
        pid = told[0].observation.process.pid
        return f"Next: gilscope record -p {pid} -d 10s -o waits.html, with all stacks; or --full."
    return "Next: the same with -o waits.html, with all stacks; or with --full."
