"""What becomes of waits that pass the limit."""

import json
import logging
import threading
from collections.abc import Callable
from zlib import decompress

import pytest

from gilscope.dump.captures import Captures
from gilscope.model.moment.dump import Dump
from support.recordings.dump import held


class _Clock:
    now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


class _Bench:
    """Captures whose taking a test lets go on, and what was written."""

    def __init__(self, take: Callable[[int, int], Dump | None] = lambda _pid, _tid: held()) -> None:
        self.clock = _Clock()
        self.written: list[str] = []
        self.asked: list[tuple[int, int]] = []
        self._take = take
        self.captures = Captures(self._taken, self._write, every_s=60, clock=self.clock)

    def _taken(self, pid: int, tid: int) -> Dump | None:
        self.asked.append((pid, tid))
        return self._take(pid, tid)

    def _write(self, dump: Dump, line: str) -> None:
        assert held() == dump
        self.written.append(line)

    def want(self, *pids: int) -> None:
        """Ask for all of *pids* before any is taken."""
        for pid in pids:
            self.captures.want(pid, 100 + pid)

    def run(self) -> dict[str, int]:
        """Take what is wanted, and return the counts."""
        self.captures.begin()
        self.captures.close()
        return dict(self.captures.counts())


def test_a_capture_is_written_and_kept() -> None:
    """
    As one line of JSON; both forms of it can be had afterwards.
    """
    bench = _Bench()
    bench.want(7)

    assert {"written": 1, "suppressed": 0, "failed": 0} == bench.run()
    assert [(7, 107)] == bench.asked
    (line,) = bench.written
    (kept,) = bench.captures.recent()
    assert json.loads(line) == json.loads(decompress(kept.json))
    assert decompress(kept.text).startswith(b"app.py, pid 7, CPython 3.11.2")
    assert (1, 7, "app.py") == (kept.number, kept.pid, kept.process)
    assert kept.verdict[0].startswith("thread 7 (MainThread")


def test_waits_meanwhile_are_in_the_same_capture() -> None:
    """
    All who wait behind one hold pass the limit at about the same time.
    """
    bench = _Bench()
    bench.want(7, 7, 7)

    assert {"written": 1, "suppressed": 0, "failed": 0} == bench.run()


@pytest.mark.parametrize(("later_s", "suppressed"), [(59.9, 1), (60.0, 0)])
def test_one_a_minute_for_each_process(later_s: float, suppressed: int) -> None:
    """
    What comes earlier is counted; another process has a minute of its own.
    """
    done = threading.Event()
    bench = _Bench()
    bench.captures = Captures(
        bench._taken,  # noqa: SLF001 - its own
        lambda _dump, _line: done.set(),
        every_s=60,
        clock=bench.clock,
    )
    bench.captures.begin()
    bench.want(7)
    assert done.wait(10)
    while not bench.captures.counts()["written"]:
        pass  # counted just behind
    bench.clock.now_s += later_s
    bench.want(7, 8)
    bench.captures.close()

    assert suppressed == bench.captures.counts()["suppressed"]
    assert 3 - suppressed == bench.captures.counts()["written"]


def test_too_many_at_once() -> None:
    """
    When its turn comes, what a process waited for would be over.
    """
    bench = _Bench()
    bench.want(*range(1, 21))

    assert {"written": 16, "suppressed": 4, "failed": 0} == bench.run()


def _raising(error: Exception) -> Callable[[int, int], Dump]:
    def take(_pid: int, _tid: int) -> Dump:
        raise error

    return take


def test_what_fails_is_counted(caplog: pytest.LogCaptureFixture) -> None:
    """
    A full disk in a line, anything else with where it was; the next one is taken all the same.
    """
    errors = iter([OSError(28, "No space left on device", "/var/\x1bcaptures"), ValueError("odd")])

    def take(pid: int, tid: int) -> Dump:
        return _raising(next(errors))(pid, tid) if pid < 3 else held()

    bench = _Bench(take)
    bench.want(1, 2, 3)

    assert {"written": 1, "suppressed": 0, "failed": 2} == bench.run()
    full, odd = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert "could not capture process 1: /var/captures No space left on device" == full.getMessage()
    assert full.exc_info is None
    assert odd.exc_info is not None


def test_a_process_that_has_gone() -> None:
    """
    There is nothing to be written.
    """
    bench = _Bench(lambda _pid, _tid: None)
    bench.want(7)

    assert {"written": 0, "suppressed": 0, "failed": 1} == bench.run()
    assert ([], ()) == (bench.written, bench.captures.recent())


def test_the_last_ones_are_kept() -> None:
    """
    Ten of them, the latest first.
    """
    bench = _Bench()
    bench.want(*range(1, 13))
    bench.run()

    assert list(range(12, 2, -1)) == [each.number for each in bench.captures.recent()]
