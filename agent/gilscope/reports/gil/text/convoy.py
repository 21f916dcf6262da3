"""What the text report says where threads queue for a switch interval each time they come back."""

from collections.abc import Iterator

from gilscope.model.gil import Recording
from gilscope.naming.places import SiteNames
from gilscope.text.ansi import Paint
from gilscope.text.printable import printable
from gilscope.text.units import counted, percent, short_duration, short_number
from gilscope.verdict.change_words import advice_lines
from gilscope.verdict.convoys import Convoy, convoys_of
from gilscope.verdict.degree import Degree

__all__ = ["behind_words", "convoy_advice", "convoy_lines", "queueing_lines"]

_LEAST_SHARE = 0.2
"""Of the time in which they queued: what is less is no answer."""
_FEW_THREADS = 16
"""Of one role: they are likely to have been there all the time."""


def convoy_lines(recording: Recording, paint: Paint) -> Iterator[str]:
    """Yield what there is to say of each convoy; nothing where there is none."""
    convoys = convoys_of(recording)
    for number, convoy in enumerate(convoys):
        if number:
            yield ""
        is_severe = convoy.degree is Degree.SEVERE
        heading = f"{'Convoy' if is_severe else 'Mild convoy'}: {printable(convoy.role)}"
        yield paint.red(heading) if is_severe else paint.bold(heading)
        yield from (f"  {line}" for line in queueing_lines(convoy, recording))
        behind = behind_words(convoy)
        if behind:
            yield f"  Behind {behind}."
    if convoys:
        yield from (f"  {line}" for line in convoy_advice(recording, convoys[0]))


def convoy_advice(recording: Recording, convoy: Convoy) -> tuple[str, ...]:
    """Return what helps, in lines: against why the GIL is kept by whoever they queue behind."""
    return advice_lines(recording, convoy.behind[0].states if convoy.behind else ())


def queueing_lines(convoy: Convoy, recording: Recording) -> Iterator[str]:
    """Yield how often, for how long, out of how many cases, and what share of their time."""
    duration_ns = recording.duration_ns
    often = convoy.lost.count * 1e9 / max(1, duration_ns)
    yield (
        f"queued {short_number(often)} times a second for at least {_interval_words(convoy)}, "
        f"{short_duration(convoy.mean_ns)} on average:"
    )
    yield f"{_cost_words(convoy, duration_ns)}, {_base_words(convoy)}."


def _interval_words(convoy: Convoy) -> str:
    interval = short_duration(convoy.interval_ns)
    return f"a switch interval ({interval})" if convoy.asks_holder else interval


def _cost_words(convoy: Convoy, duration_ns: int) -> str:
    if convoy.threads <= _FEW_THREADS:
        return f"{percent(convoy.time_share)} of its time"
    # Most of so many have lived for a part of the recording only.
    waiting = convoy.lost.ns / max(1, duration_ns)
    return f"{waiting:.2f} of its {convoy.threads} threads at any moment"


def _base_words(convoy: Convoy) -> str:
    number = convoy.lost.count
    if convoy.acquires is not None and convoy.acquires >= number:
        share = percent(number / max(1, convoy.acquires))
        times = counted(convoy.acquires, "time")
        if convoy.is_estimate:
            return f"in {number} of ≈ {times} that it acquired the GIL, ≈ {share}"
        return f"in {number} of the {times} that it acquired the GIL, {share}"
    times = counted(convoy.returns, "time")
    return f"in {number} of the {times} that it had to wait after a blocking call"


def behind_words(convoy: Convoy) -> str:
    """Return whose code had the GIL meanwhile, or who else computes; empty: nobody stands out."""
    if not convoy.behind:
        return " and ".join(map(printable, convoy.computing))
    costliest = convoy.behind[0]
    share = costliest.lost.ns / max(1, sum(loss.lost.ns for loss in convoy.behind))
    if share < _LEAST_SHARE:
        return ""
    place = printable(SiteNames().owner(costliest.frame, costliest.costliest))
    return f"{place}, for {percent(share)} of that time"
