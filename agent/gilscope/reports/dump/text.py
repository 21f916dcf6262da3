"""A dump for people: the answer first, then the threads, those with the same stack together."""

from collections.abc import Iterator, Sequence

from gilscope.model.application import EVERYBODYS
from gilscope.model.moment.dump import Dump, DumpedThread
from gilscope.model.stack import Stack, StackState
from gilscope.naming.origins import Origin, origin_of
from gilscope.naming.places import IN_WORDS, SiteNames
from gilscope.naming.python import python_words
from gilscope.reports.dump.words import state_words, verdict
from gilscope.series.holders import losses_by_holder
from gilscope.text.ansi import Paint
from gilscope.text.printable import printable
from gilscope.text.units import counted, percent, seconds, short_duration

__all__ = ["render"]

_MOST_THREADS = 12
"""That are listed one by one where many have the same stack."""
_MOST_PAIRS = 3
_MARK = "*"


def render(dump: Dump, *, colour: bool = False) -> str:
    """Return *dump* as text; *colour* adds terminal colours."""
    return "\n".join(line.rstrip() for line in _lines(dump, Paint(on=colour))) + "\n"


def _lines(dump: Dump, paint: Paint) -> Iterator[str]:
    who = f"{printable(dump.process)}, pid {dump.pid}, {python_words(dump.python)}"
    yield f"{paint.bold(who)}: {counted(len(dump.threads), 'thread')}"
    if dump.trigger is not None:
        yield (
            f"Taken because thread {dump.trigger.tid} had waited for the GIL for "
            f"{short_duration(dump.trigger.waited_ns)}, longer than "
            f"{short_duration(dump.trigger.limit_ns)}."
        )
    yield ""
    for line in verdict(dump):
        sentence = f"{line[:1].upper()}{line[1:]}."
        yield paint.red(sentence) if line.startswith("deadlock") else paint.bold(sentence)
    yield from _pair_lines(dump, paint)
    names = SiteNames()
    for stack, threads in _groups(dump):
        yield ""
        yield from _thread_lines(dump, threads, paint)
        yield from _stack_lines(stack, names, paint)
    if dump.left_out:
        yield ""
        yield f"{counted(dump.left_out, 'thread')} left out: there are too many."
    yield ""
    yield f"{_MARK} marks frames of the application; the innermost one is first."


def _pair_lines(dump: Dump, paint: Paint) -> Iterator[str]:
    pairs = dump.pairs or ()
    lost_ns = sum(pair.lost.ns for pair in pairs)
    if not lost_ns:
        return
    names = SiteNames()
    yield ""
    yield paint.bold("Whose code kept the GIL") + (
        f", of {seconds(lost_ns)} lost in the last {seconds(dump.pairs_ns)}"
    )
    for loss in losses_by_holder(pairs, EVERYBODYS)[:_MOST_PAIRS]:
        site = printable(names.owner(loss.frame, loss.costliest))
        yield f"{percent(loss.lost.ns / lost_ns):>7} {seconds(loss.lost.ns):>9}  {site}"


def _groups(dump: Dump) -> Sequence[tuple[Stack | None, Sequence[DumpedThread]]]:
    """Return the threads by stack: first who holds a GIL, then who waits, then larger groups."""
    groups: dict[Stack | None, list[DumpedThread]] = {}
    for thread in dump.threads:
        groups.setdefault(thread.stack, []).append(thread)
    holders = {gil.holder_tid for gil in dump.gils}

    def rank(group: tuple[Stack | None, list[DumpedThread]]) -> tuple[bool, bool, bool, int]:
        stack, threads = group
        is_holder = any(each.tid in holders for each in threads)
        is_waiter = any(each.awaited is not None for each in threads)
        return not is_holder, stack is None, not is_waiter, -len(threads)

    return sorted(groups.items(), key=rank)


def _thread_lines(dump: Dump, threads: Sequence[DumpedThread], paint: Paint) -> Iterator[str]:
    holds = {gil.holder_tid for gil in dump.gils}
    for thread in threads[:_MOST_THREADS]:
        holding = "holds the GIL, " if thread.tid in holds else ""
        yield (
            f"{paint.bold(f'Thread {thread.tid}')} {printable(thread.role)}"
            f" [{printable(thread.name)}]: {holding}{state_words(thread)}"
            f"{paint.dim(_used_words(thread))}"
        )
        if thread.request is not None:
            yield f"  serves trace {thread.request.trace_id}, span {thread.request.span_id}"
    if len(threads) > _MOST_THREADS:
        yield f"and {counted(len(threads) - _MOST_THREADS, 'more thread')} with the same stack"


def _used_words(thread: DumpedThread) -> str:
    """Return what *thread* has had of processors since it began."""
    if thread.cpu_ns is None or thread.run_delay_ns is None:
        return ""
    ready = short_duration(thread.run_delay_ns)
    return f" (CPU time {short_duration(thread.cpu_ns)}, ready without a CPU {ready})"


def _stack_lines(stack: Stack | None, names: SiteNames, paint: Paint) -> Iterator[str]:
    if stack is None:
        yield paint.dim("    (no thread of Python)")
        return
    for frame in stack.frames:
        is_own = origin_of(frame) is Origin.APPLICATION
        site = printable(names.site(frame))
        yield f"  {_MARK} {paint.bold(site)}" if is_own else f"    {paint.dim(site)}"
    if stack.state is not StackState.WHOLE:
        yield paint.dim(f"    ({IN_WORDS[stack.state]})")
