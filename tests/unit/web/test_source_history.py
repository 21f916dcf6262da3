"""What a source has shown in the last minutes."""

import queue
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import pytest

from gilscope.model.gil import GilObservation
from gilscope.model.observation import Observation
from gilscope.series.blocking import BlockingSeries
from gilscope.web.source_history import SourceHistory
from support.recordings.gil import MS, PROCESS, full_mode
from support.recordings.locks import lock_recording
from support.recordings.transactions import stm_observation
from support.reports.scraped import Fixed
from support.stm_log.following import followed_log
from support.stm_log.program import played_log

_S = 1000 * MS


def _gils(watched: SourceHistory) -> list[GilObservation]:
    return [seen.gil for seen in watched.observe() if seen.gil is not None]


def _after(seconds: int, *, waits: int, holds: int) -> GilObservation:
    """Return an observation so long after the attachment, with seconds of waiting and holding."""
    seen = full_mode().observation
    thread = seen.totals.threads[1]
    (kind, tally) = next((kind, tally) for kind, tally in thread.lost.items() if tally.count)
    thread = replace(thread, lost={**thread.lost, kind: replace(tally, ns=waits * _S)})
    lock = replace(seen.totals.gils[0], held_ns=holds * _S)
    totals = replace(seen.totals, at_ns=seconds * _S, threads=(thread,), gils=(lock, lock))
    return replace(seen, totals=totals)


def test_curve_is_of_all_threads_and_all_locks() -> None:
    """
    Two locks that are held for half of the time each come to 100 %.
    """
    source = Fixed([_after(10, waits=0, holds=0)])
    watched = SourceHistory(source.source, None)
    watched.observe()
    source.observations = [_after(20, waits=15, holds=5)]

    curve = watched.curves(_gils(watched))[PROCESS.pid]

    assert (1.5, 1.0) == (curve.lost, curve.held)
    assert 2 == len(curve.stretches)


def test_what_cannot_be_trusted_has_no_curve() -> None:
    """
    And none of before.
    """
    source = Fixed([replace(_after(10, waits=1, holds=1), invalid="wrong place")])
    watched = SourceHistory(source.source, None)

    assert {} == watched.curves(_gils(watched))


def test_transactions_have_curves() -> None:
    """
    10 aborts of 1 ms in 2 s.
    """
    seen = stm_observation()
    watched = SourceHistory(Fixed(transactions=[seen]).source, None)

    watched.observe()
    curve = watched.stm_curves([seen])[seen.process.pid]

    assert curve.lost == pytest.approx(0.005)


def test_locks_have_curves() -> None:
    """
    50 ms of waiting in a second; none of what is not traced, or cannot be trusted.
    """
    seen = lock_recording().observation
    untraced = lock_recording(invalid="too old", has_totals=False).observation
    watched = SourceHistory(Fixed(locks=[seen, untraced]).source, None)

    watched.observe()
    curves = watched.lock_curves([seen])

    assert curves[seen.process.pid].lost == pytest.approx(0.05)
    assert {} == watched.lock_curves([untraced, replace(seen, invalid="its probe has gone")])


def test_a_log_that_is_not_read_yet_has_no_curve() -> None:
    """
    What was written last week is no loss of today.
    """
    content = played_log("E16", 300).content
    behind = followed_log(content, name="behind", lag_bytes=len(content))
    watched = SourceHistory(Fixed().source, lambda: [behind, followed_log(content, name="read")])

    curves = watched.log_curves(watched.logs())

    assert {"behind", "read"} == set(curves)
    assert [0, 1] == [len(curves[name].stretches) for name in ("behind", "read")]


@dataclass
class _Counted(Fixed):
    """Tells whenever it is asked."""

    asked: "queue.SimpleQueue[None]" = field(default_factory=queue.SimpleQueue)
    fails: bool = False

    def observe(self) -> Sequence[Observation]:
        """Return what it was made with."""
        self.asked.put(None)
        if self.fails:
            raise OSError("no")
        return super().observe()


@pytest.mark.parametrize("fails", [False, True])
def test_it_observes_by_itself_where_nobody_does(*, fails: bool) -> None:
    """
    Again and again, also when it went wrong, until it is to end.
    """
    source = _Counted([full_mode().observation], fails=fails)
    watched = SourceHistory(source.source, None, unwatched_ns=MS)
    stopped = threading.Event()
    thread = threading.Thread(target=watched.keep_up, args=(BlockingSeries(), stopped))
    thread.start()
    for _ in range(3):
        source.asked.get(timeout=30)
    stopped.set()
    thread.join(30)

    assert not thread.is_alive()


class _Ending(threading.Event):
    """Notes how long somebody is ready to wait for it, and is set."""

    timeout: float | None = None

    def wait(self, timeout: float | None = None) -> bool:
        """Return at once."""
        self.timeout = timeout
        return True


def test_it_does_not_observe_where_somebody_does() -> None:
    """
    A scrape is a sample: for ten seconds no other is due.
    """
    watched = SourceHistory(Fixed([full_mode().observation]).source, None)
    watched.observe()
    ending = _Ending()

    watched.keep_up(BlockingSeries(), ending)

    assert ending.timeout is not None
    assert 5 < ending.timeout <= 10


class _Resting(threading.Event):
    """Lets time pass while somebody waits for it, and is set after so many waits."""

    def __init__(self, waits: int) -> None:
        super().__init__()
        self.waited_s: list[float] = []
        self.now_ns = 0
        self._left = waits

    def wait(self, timeout: float | None = None) -> bool:
        """Return at once."""
        assert timeout is not None
        self.waited_s.append(timeout)
        self.now_ns += round(timeout * _S) + 1
        self._left -= 1
        return self._left < 0


@pytest.mark.parametrize(("took_s", "rests_s"), [(0.04, 10), (0.2, 40), (3, 60)])
def test_the_longer_it_takes_the_longer_it_rests(
    took_s: float, rests_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Two hundred times as long: ten seconds at least, a minute at the most.
    """
    resting = _Resting(waits=30)
    cpu_ns = 0

    class Costly(Fixed):
        """Takes its time."""

        def observe(self) -> list[Observation]:
            """Return nothing, late."""
            nonlocal cpu_ns
            cpu_ns += round(took_s * _S)
            observed_ns.append(resting.now_ns)
            return []

    observed_ns: list[int] = []
    monkeypatch.setattr(time, "monotonic_ns", lambda: resting.now_ns)
    monkeypatch.setattr(time, "thread_time_ns", lambda: cpu_ns)
    SourceHistory(Costly([]).source, None).keep_up(BlockingSeries(), resting)
    gaps_s = [(later - first) / _S for first, later in pairwise(observed_ns)]

    assert gaps_s
    assert [pytest.approx(rests_s, abs=0.01)] * len(gaps_s) == gaps_s
