"""What the text report says where one call keeps the GIL, however often it is asked to drop it."""

from collections.abc import Iterator

from gilscope.model.gil import ProcessTotals, Recording
from gilscope.naming.hold_states import advice, why_words
from gilscope.naming.places import SiteNames
from gilscope.text.ansi import Paint
from gilscope.text.printable import printable
from gilscope.text.units import counted, percent, short_duration
from gilscope.verdict.hogs import Hog, hog_of

__all__ = ["hog_lines"]


def hog_lines(recording: Recording, paint: Paint) -> Iterator[str]:
    """Yield the verdict on the costliest hog; nothing where there is none.

    Threads that queue behind it would look like a convoy, whose cure is another one.
    """
    totals = recording.observation.totals
    hog = hog_of(totals, recording.application, recording.duration_ns)
    if hog is None:
        return
    number = counted(hog.drop_latency.count, "time")
    share = percent(min(1.0, hog.drop_latency.ns / max(1, recording.duration_ns)))
    yield paint.red(f"Hog: {_place(hog)}")
    yield (
        f"  was asked {number} to drop the GIL and kept it, "
        f"{short_duration(hog.longest_ns)} at the longest and {share} of the time"
        f"{_still(hog)}."
    )
    why = why_words(hog.states)
    if not why:
        yield "  It is C code that does not release the GIL, or its thread had no CPU. What helps:"
        yield "  smaller pieces of work, C code that releases, another process, a CPU for it; a"
        yield "  shorter sys.setswitchinterval() does not: the request is not heard."
        return
    yield f"  Why: {printable(why)}{_throttled(totals)}."
    yield from (f"  {line}" for line in advice(hog.states))
    yield "  A shorter sys.setswitchinterval() does not: the request is not heard."


def _throttled(totals: ProcessTotals) -> str:
    if not totals.throttled_ns:
        return ""
    return f"; its cgroup was throttled for {short_duration(totals.throttled_ns)}"


def _place(hog: Hog) -> str:
    names = SiteNames()
    leaf = hog.holder.frames[:1]
    below = f", in {names.site(leaf[0])}" if leaf and leaf[0] != hog.frame else ""
    return printable(names.owner(hog.frame, hog.holder) + below)


def _still(hog: Hog) -> str:
    if not hog.in_flight_ns:
        return ""
    return f"; it has not dropped it for {short_duration(hog.in_flight_ns)} now"
