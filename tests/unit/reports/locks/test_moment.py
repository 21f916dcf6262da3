"""The picture of the moment at which threads waited most for locks."""

import re
from collections.abc import Sequence
from dataclasses import replace

from gilscope.model.locks import LockKind, LockMoment, LockRecording, LockSpan, StopCause, StopSpan
from gilscope.model.stack import UNKNOWN_STACK
from gilscope.naming.places import SiteNames
from gilscope.reports.locks.html import render
from gilscope.reports.locks.moment import moment_section
from support.recordings.locks import APPEND, HOLD, MS, RELEASE, STACKS, lock_recording

_S = 1000 * MS
_BEGAN_NS = _S + 400 * MS


def _wait(from_ms: int, until_ms: int, tid: int = 11, kind: LockKind = LockKind.OBJECT) -> LockSpan:
    return LockSpan(
        tid,
        kind,
        "list" if kind is LockKind.OBJECT else None,
        _BEGAN_NS + from_ms * MS,
        _BEGAN_NS + until_ms * MS,
        STACKS[APPEND],
        STACKS[RELEASE],
        STACKS[HOLD] if kind is LockKind.OBJECT else UNKNOWN_STACK,
    )


def _stop(from_ms: int, until_ms: int, *, stands: bool) -> StopSpan:
    ends = _BEGAN_NS + from_ms * MS, _BEGAN_NS + until_ms * MS
    return StopSpan(11, StopCause.COLLECTION, stands, *ends, STACKS[RELEASE])


def _recording(
    waits: Sequence[LockSpan],
    stops: Sequence[StopSpan] = (),
    unseen: tuple[tuple[int, int], ...] = (),
) -> LockRecording:
    ends = _BEGAN_NS, _BEGAN_NS + 200 * MS
    return replace(
        lock_recording(),
        worst=LockMoment(*ends, tuple(waits), tuple(stops), unseen, 3 * len(unseen)),
    )


def _section(recording: LockRecording) -> str:
    return "".join(moment_section(recording, SiteNames())).replace("\xa0", " ")


def _rows(section: str) -> list[tuple[str, str]]:
    """Return the heading of each row, and what is said to who does not see it."""
    return re.findall(r'<th scope="row">(.*?)</th>.*?aria-label="(.*?)"', section)


def _titles(section: str) -> list[str]:
    return re.findall("<title>(.*?)</title>", section)


def test_each_thread_that_waited_has_a_row() -> None:
    """
    By its number, with what lies inside the moment; it is said when that was.
    """
    section = _section(_recording([_wait(-10, 50), _wait(60, 100), _wait(150, 300, 12)]))

    assert "<h2>The worst 200 ms</h2>" in section
    assert "0.140 s in all, by 2 threads, 0.400 s into the recording" in section
    assert [
        ("first, 11", "waited for 90 ms"),
        ("second, 12", "waited for 50 ms"),
    ] == _rows(section)
    assert [("0.000%", "25.000%"), ("30.000%", "20.000%"), ("75.000%", "25.000%")] == re.findall(
        r'class="wait" x="(.*?)" y="9" width="(.*?)"', section
    )


def test_a_wait_says_for_what_and_who_ended_it() -> None:
    """
    A stop of the world was asked for, and looks like no lock.
    """
    section = _section(_recording([_wait(0, 50), _wait(60, 70, 12, LockKind.WORLD_STOP)]))

    there, had = "in append (app.py:12)", "held by compare (app.py:41)"
    by = "released by sort (app.py:33)"
    assert [
        f"waited 50 ms for the lock of an object (list) {there}, {had}, {by}",
        f"waited 10 ms for the end of a stop of the world {there}, asked for by sort (app.py:33)",
    ] == _titles(section)
    assert 1 == section.count('<rect class="wait" x="0.000%"')
    assert 1 == section.count('<rect class="stopped" x="30.000%"')


def test_the_world_has_a_row_where_it_was_stopped() -> None:
    """
    First, in two looks: until all had stopped, and from then on.
    """
    stops = [_stop(10, 12, stands=False), _stop(12, 30, stands=True)]
    section = _section(_recording([_wait(0, 50)], stops))

    assert ("stops of the world", "stopped, or about to be, for 20 ms") == _rows(section)[0]
    assert [
        "2 ms until all had stopped, for garbage collection, asked for by sort (app.py:33)",
        "all had stopped for 18 ms, for garbage collection, asked for by sort (app.py:33)",
    ] == _titles(section)[:2]
    assert "a thread had asked all others to stop" in section
    assert "stops of the world" not in _section(_recording([_wait(0, 50)]))


def test_what_is_not_seen_is_said() -> None:
    """
    Seconds with too many waits, windows, and threads for which there is no room.
    """
    unseen = ((_BEGAN_NS + 100 * MS, _BEGAN_NS + 200 * MS),)
    recording = _recording([_wait(0, 50, tid) for tid in range(1, 20)], unseen=unseen)
    windows = replace(recording, observation=replace(recording.observation, is_whole=False))
    section = _section(windows)

    assert 16 == len(_rows(section)) == section.count("<title>not looked at</title>")
    assert "3 more threads waited, and for less." in section
    assert "Seen in windows" in section
    assert "not looked at: too many waits in that second" in section
    assert "In 3 seconds there were too many waits to look at one by one" in section
    assert "too many waits to look at" not in _section(_recording([_wait(0, 50)]))
    assert "Seen in windows" not in _section(recording)
    assert "could not be kept" not in _section(recording)
    assert recording.worst is not None
    lossy = replace(recording, worst=replace(recording.worst, dropped=7))
    assert "7 more waits could not be kept, and may have been worse." in _section(lossy)


def test_without_a_moment_there_is_no_picture() -> None:
    """
    Where nobody waited, or it was not asked for; else it is a part of the page.
    """
    assert "" == _section(lock_recording())
    assert "lock-moment" not in render(lock_recording())
    assert 1 == render(_recording([_wait(0, 50)])).count('<section id="lock-moment">')
