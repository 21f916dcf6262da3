"""What reports say of calls that should not release the GIL, and of calls that should."""

from collections.abc import Iterator

from gilscope.model.gil import BriefRelease, Recording
from gilscope.naming.hold_states import state_words
from gilscope.naming.places import SiteNames
from gilscope.text.printable import printable
from gilscope.text.units import counted, seconds, short_duration
from gilscope.verdict.releases import KeepingCall, brief_releases, keeping_calls

__all__ = ["BRIEF_ADVICE", "BRIEF_HEADING", "KEEPING_HEADING", "brief_words", "keeping_words"]

BRIEF_HEADING = "Released for microseconds, and waited for longer to get it back"
BRIEF_ADVICE = (
    "What helps: fewer and larger calls; in code of your own, keep the GIL for what is so short."
)
KEEPING_HEADING = "Calls that keep the GIL while others wait"
_MOST = 3


def brief_words(recording: Recording) -> Iterator[str]:
    """Yield a line for each of the costliest calls that should not release the GIL."""
    names = SiteNames()
    for each in (brief_releases(recording) or ())[:_MOST]:
        yield _brief(each, names)


def keeping_words(recording: Recording) -> Iterator[str]:
    """Yield a line for each of the costliest calls that should release it."""
    totals = recording.observation.totals
    names = SiteNames()
    for each in keeping_calls(totals, recording.application, recording.duration_ns)[:_MOST]:
        yield _keeping(each, names)


def _brief(release: BriefRelease, names: SiteNames) -> str:
    number = release.waited.count
    place = printable(names.site(release.waiter.frames[0]))
    return (
        f"{place}: {counted(number, 'call')} of {short_duration(release.away_ns // number)} on "
        f"average, then {seconds(release.waited.ns)} of waiting, "
        f"{short_duration(release.waited.ns // number)} each"
    )


def _keeping(call: KeepingCall, names: SiteNames) -> str:
    place = printable(names.owner(call.frame, call.holder))
    what = printable(state_words(call.state, call.detail))
    return f"{place}: ≈ {seconds(call.lost_ns)} that others waited for {what}"
