"""What stm follow says of an interval."""

import json

from gilscope.reports.stm_log import interval_json, interval_text
from gilscope.stm_log.interval import Interval, interval
from support.stm_log.following import followed_log
from support.stm_log.writer import MS, LogWriter, S, marker


def _log(collisions: int) -> bytes:
    """Return a log in which a thread commits once, and each collision costs 50 ms and 20 ms."""
    writer = LogWriter("L7").add(0, 1, "START").add(MS, 1, "COMMIT")
    for number in range(collisions):
        begin_ns = (number + 1) * 100 * MS
        writer.add(begin_ns, 1, "START")
        writer.add(begin_ns + 50 * MS, 1, "WRITE_WRITE", marker(3), marker(5, "g"), other=2)
        writer.add(begin_ns + 50 * MS, 1, "WAIT_CONTENTION")
        writer.add(begin_ns + 70 * MS, 1, "WAIT_DONE").add(begin_ns + 70 * MS, 1, "ABORT")
    return writer.content


def _interval(lag_bytes: int = 0, problem: str = "") -> Interval:
    before = followed_log(_log(10))
    now = followed_log(_log(13), lag_bytes=lag_bytes, problem=problem)
    return interval([before], [now], 2 * S)


def test_summary_has_what_has_come() -> None:
    """
    Transactions, time by kind, and the costliest places with both their positions.
    """
    size = len(_log(13)) - len(_log(10))

    assert [
        "12:30:05  app.log: 0 committed, 3 aborted (100 %)",
        f"  {size} bytes read, 7 bytes behind",
        "  lost: 0.210s contention write write",
        "  waits: 0.060s wait contention",
        "  0.150s lost in aborts, 0.060s paused (3x STM_CONTENTION_WRITE_WRITE)",
        '    File "app.py", line 3, in f',
        '    File "app.py", line 5, in g',
    ] == interval_text.render(_interval(lag_bytes=7), "12:30:05").splitlines()


def test_places_are_as_many_as_are_wanted() -> None:
    """
    None, if that is wanted.
    """
    assert 4 == len(interval_text.render(_interval(), "12:30:05", 0).splitlines())


def test_log_that_has_not_changed_is_left_out() -> None:
    """
    And where none has, that is said.
    """
    same, other = followed_log(_log(3)), followed_log(_log(3), name="b.log")
    new = followed_log(_log(4), name="b.log")

    assert "app.log" not in interval_text.render(interval([same, other], [same, new], S), "")
    assert "12:30:05  nothing new in 2 logs\n" == interval_text.render(
        interval([same, other], [same, other], S), "12:30:05"
    )
    assert "12:30:05  no log yet\n" == interval_text.render(interval([], [], S), "12:30:05")


def test_error_comes_with_the_reason() -> None:
    """
    In the interval in which it was met.
    """
    gap = _log(3) + bytes(40) + _log(3)[16:]
    now = followed_log(gap, problem="app.log has a gap")
    seen = interval([followed_log(_log(3))], [now], S)

    assert "  1x gap: app.log has a gap" in interval_text.render(seen, "").splitlines()


def test_json_has_the_interval_and_the_total() -> None:
    """
    Times in seconds; without a problem there is null.
    """
    line = json.loads(interval_json.render(_interval(), 1e9, 1))

    log = line["logs"]["app.log"]
    assert (1e9, 2.0, None) == (line["at_s"], line["interval_s"], log["problem"])
    assert [3, 13] == [log[part]["aborts"] for part in ("interval", "total")]
    assert [0.15, 0.65] == [log[part]["aborted_s"] for part in ("interval", "total")]
    assert {"STM_WAIT_CONTENTION": 0.06} == log["interval"]["waits"]
    assert [
        {
            "lost_s": 0.15,
            "paused_s": 0.06,
            "count": 3,
            "kind": "STM_CONTENTION_WRITE_WRITE",
            "markers": [marker(3), marker(5, "g")],
            "rest": False,
        }
    ] == log["interval"]["entries"]
