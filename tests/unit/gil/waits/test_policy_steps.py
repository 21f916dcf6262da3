"""When the probes on waits are put in and taken out, and what is counted from when on."""

from random import Random
from typing import cast

import pytest

from gilscope.budget.wait_share import WaitShare
from gilscope.errors import KernelOrBccMissing
from gilscope.gil.totals.scaled import ScaledCounts
from gilscope.gil.waits.policy import Counted, ProcessWaits
from gilscope.gil.waits.window import InFlight, WaitWindow

_S = 1_000_000_000
_MS = 1_000_000
_NEVER_NS = (1 << 64) - 1


class _Window:
    """Says what is done with it, and when."""

    longest_interval_ns = 5 * _MS

    def __init__(self, setting: "_Setting") -> None:
        self._setting = setting
        self.is_placed, self._is_out, self.was_asked = True, False, False
        self._from_ns, self.until_ns = setting.now_ns, _NEVER_NS
        self.flying = InFlight(_NEVER_NS, _NEVER_NS)
        self.refuses = False

    @property
    def is_out(self) -> bool:
        self.was_asked = True
        return self._is_out

    def in_flight(self) -> InFlight:
        return self.flying

    def end(self) -> None:
        self._setting.did("end")
        self.until_ns = self._setting.now_ns

    def place(self, from_ns: int, warm_up_ns: int, length_ns: int) -> None:
        if self.refuses:
            raise KernelOrBccMissing("no room")
        from_ns = max(from_ns, self._setting.now_ns + warm_up_ns)
        self._setting.did("place")
        self.is_placed, self._is_out, self.was_asked = True, False, False
        self._from_ns, self.until_ns = from_ns, from_ns + length_ns

    def go_on(self, from_ns: int, length_ns: int) -> None:
        self._setting.did("go on")
        self._note()
        self._from_ns = max(from_ns, self._setting.now_ns)
        self.until_ns = self._from_ns + length_ns

    def take_out(self) -> int:
        self._setting.did("take out")
        self._note()
        self._from_ns = self.until_ns = _NEVER_NS
        self.is_placed, self._is_out = False, True
        return self.flying.counted_ns != _NEVER_NS

    def _note(self) -> None:
        seen_ns = min(self.until_ns, self._setting.now_ns) - self._from_ns
        self._setting.told_ns += seen_ns * self._setting.scaled.weight


class _Setting:
    """The waits of one process, whose share is what a test says."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_ns = 1000 * _S
        self.done: list[str] = []
        self.ended_waits = 0
        self.keeper_losses = 0
        self.wait_ns = 0
        self.told_ns = 0.0
        """For how much time it stands what was seen."""
        monkeypatch.setattr("gilscope.gil.waits.policy.time.monotonic_ns", lambda: self.now_ns)
        self.window = _Window(self)
        self.share = WaitShare.__new__(WaitShare)
        self.share.share = 1.0
        self.scaled = ScaledCounts()
        self.waits = ProcessWaits(
            7,
            cast("WaitWindow", self.window),
            self.scaled,
            self.share,
            Random(1),  # noqa: S311 - nobody has to be kept from guessing
            Counted(
                lambda: self.did("read"),
                lambda: self.wait_ns,
                lambda: self.ended_waits,
                lambda: self.keeper_losses,
            ),
        )

    def did(self, what: str) -> None:
        self.done.append(f"{what} at {self.scaled.weight:g}")

    def change(self, share: float) -> None:
        self.share.share = share
        self.waits.change()

    def run(self, for_ns: int) -> list[str]:
        """Do what is due in that time, and return what was done."""
        until_ns, self.done = self.now_ns + for_ns, []
        for _ in range(100_000):
            if self.waits.due_ns > until_ns:
                break
            self.now_ns = max(self.now_ns, self.waits.due_ns)
            self.waits.step(self.now_ns)
        else:
            pytest.fail("it is due again and again")
        self.now_ns = until_ns
        return self.done


@pytest.fixture
def setting(monkeypatch: pytest.MonkeyPatch) -> _Setting:
    """One process, all of whose waits are seen."""
    return _Setting(monkeypatch)


def test_nothing_is_done_while_all_waits_are_seen(setting: _Setting) -> None:
    """
    Not even asked.
    """
    assert [] == setting.run(3600 * _S)


def test_the_share_takes_hold_when_the_waits_of_before_have_ended(setting: _Setting) -> None:
    """
    They stand for themselves: what they come to is read before anything stands for more.
    """
    setting.window.flying = InFlight(setting.now_ns - 10 * _MS, _NEVER_NS)
    setting.change(0.1)
    for _ in range(10):
        setting.ended_waits += 10
        done = setting.run(50 * _MS)
    assert [] == done
    assert setting.window.until_ns < setting.now_ns
    setting.window.flying = InFlight(_NEVER_NS, _NEVER_NS)

    assert ["take out at 1", "read at 1"] == setting.run(120 * _MS)
    assert 10.0 == setting.scaled.weight


def test_a_wait_that_begins_when_windows_are_about_to_is_followed(setting: _Setting) -> None:
    """
    It counts, and is not given up for not having been there a moment before.
    """
    setting.change(0.1)
    setting.run(100 * _MS)
    assert setting.window.is_placed
    setting.window.flying = InFlight(setting.window.until_ns - 1, _NEVER_NS)
    assert [] == setting.run(500 * _MS)
    setting.window.flying = InFlight(_NEVER_NS, _NEVER_NS)

    assert "take out at 1" == setting.run(200 * _MS)[0]
    assert 0 == setting.waits.given_up


@pytest.mark.parametrize("lasts_ms", range(600, 9900, 300))
def test_time_that_nothing_stands_for_is_told(setting: _Setting, lasts_ms: int) -> None:
    """
    Where all waits are to be seen again, and those of a window outlast the spell it stands for.
    """
    began_ns = setting.now_ns
    setting.change(0.1)
    while "place at 10" not in setting.run(10 * _MS):
        pass
    setting.window.flying = InFlight(setting.now_ns, _NEVER_NS)
    setting.change(1.0)
    for _ in range(lasts_ms // 10):
        setting.ended_waits += 20
        setting.run(10 * _MS)
    setting.window.flying = InFlight(_NEVER_NS, _NEVER_NS)
    while "place at 1" not in setting.run(10 * _MS):
        pass
    untold_ns = setting.now_ns - began_ns - setting.told_ns

    assert (untold_ns > 600 * _MS) == (setting.waits.missed > 0)


def test_all_waits_count_as_long_as_the_lock_is_kept(setting: _Setting) -> None:
    """
    Who waits for it does; what it costs to see that is next to nothing.
    """
    for waiting in (
        InFlight(setting.now_ns, _NEVER_NS),
        InFlight(_NEVER_NS, setting.now_ns - 10 * _MS),
    ):
        setting.window.flying = waiting
        setting.change(0.1)
        assert [] == setting.run(600 * _S)
        assert setting.window.until_ns > setting.now_ns
    setting.window.flying = InFlight(_NEVER_NS, _NEVER_NS)

    assert ["end at 1", "take out at 1", "read at 1"] == setting.run(_S)[:3]


def test_what_is_seen_stands_for_all_of_the_time_however_the_share_changes(
    setting: _Setting,
) -> None:
    """
    To a spell, of an hour, in which it changes at any instant; and no window is missed.
    """
    random = Random(3)  # noqa: S311 - nobody has to be kept from guessing
    began_ns = setting.now_ns
    while setting.now_ns < began_ns + 3600 * _S:
        setting.change(random.choice([1.0, 0.5, 0.2, 0.1, 0.02]))
        setting.run(int(random.expovariate(1 / 20) * _S))
    setting.change(1.0)
    setting.run(60 * _S)
    setting.change(0.5)
    setting.run(10 * _S)

    assert setting.told_ns == pytest.approx(setting.now_ns - began_ns, abs=2 * _S, rel=0.002)
    assert 0 == setting.waits.missed


def test_windows_come_once_in_each_spell(setting: _Setting) -> None:
    """
    Half a second of every five.
    """
    setting.change(0.1)
    done = setting.run(60 * _S)

    assert 12 == pytest.approx(done.count("place at 10"), abs=1)
    assert done.count("place at 10") == pytest.approx(done.count("take out at 10"), abs=1)


def test_another_share_is_that_of_later_windows(setting: _Setting) -> None:
    """
    The window that is open ends before, and the next ones begin when its spell is over.
    """
    setting.change(0.5)
    while "place at 2" not in setting.run(10 * _MS):
        pass
    setting.change(0.25)
    done = setting.run(600 * _MS)

    assert ["take out at 2", "read at 2"] == done[:2]
    assert 4.0 == setting.scaled.weight


def test_another_share_takes_hold_however_long_waits_are(setting: _Setting) -> None:
    """
    No further window begins meanwhile, whose waits would have to be followed too.
    """
    setting.change(0.4)
    setting.run(10 * _S)
    while "place at 2.5" not in setting.run(10 * _MS):
        pass
    setting.window.flying = InFlight(setting.now_ns, _NEVER_NS)
    setting.change(0.02)
    done = []
    for _ in range(30):
        setting.ended_waits += 20
        done += setting.run(100 * _MS)
    assert [] == done
    setting.window.flying = InFlight(_NEVER_NS, _NEVER_NS)

    assert ["take out at 2.5", "read at 2.5"] == setting.run(100 * _MS)
    assert 50.0 == setting.scaled.weight


def test_what_was_given_up_is_cleared_as_soon_as_the_probes_are_out(setting: _Setting) -> None:
    """
    And not when the next window comes.
    """
    setting.change(0.02)
    setting.run(60 * _S)
    while "place at 50" not in setting.run(10 * _MS):
        pass
    setting.window.flying = InFlight(setting.now_ns, _NEVER_NS)
    while not setting.waits.given_up:
        setting.ended_waits += 20
        setting.run(100 * _MS)

    assert setting.window.was_asked


def test_all_waits_are_seen_again(setting: _Setting) -> None:
    """
    With an error that is none any more.
    """
    setting.change(0.5)
    setting.run(30 * _S)
    setting.change(1.0)
    done = setting.run(3 * _S)

    assert "place at 1" == done[-1]
    assert setting.window.until_ns > 1 << 60
    assert setting.waits.error is None
    assert [] == setting.run(3600 * _S)


def test_probes_stay_while_the_lock_is_kept(setting: _Setting) -> None:
    """
    Whether who waits for it counts or not; windows are begun meanwhile.
    """
    setting.change(0.5)
    setting.run(10 * _S)
    for waiting in (
        InFlight(setting.now_ns, _NEVER_NS),
        InFlight(_NEVER_NS, setting.now_ns - 10 * _MS),
    ):
        setting.window.flying = waiting
        setting.run(3 * _S)
        assert {"go on at 2"} == set(setting.run(600 * _S))
        setting.window.flying = InFlight(_NEVER_NS, _NEVER_NS)
        assert "take out at 2" in setting.run(2 * _S)
    assert 0 == setting.waits.given_up


def test_whoever_is_left_out_keeps_no_probes_where_others_switch(setting: _Setting) -> None:
    """
    Somebody always waits in a busy process.
    """
    setting.change(0.5)
    done = []
    for _ in range(600):
        setting.ended_waits += 100
        setting.window.flying = InFlight(_NEVER_NS, setting.now_ns - 5 * _MS)
        done += setting.run(100 * _MS)

    assert "go on at 2" not in done
    assert done.count("take out at 2") > 50


def test_a_wait_among_others_that_switch_all_the_time_is_given_up(setting: _Setting) -> None:
    """
    Ten seconds after it began, for all others run into the probes; once.
    """
    setting.change(0.1)
    setting.run(20 * _S)
    began_ns = setting.now_ns
    setting.window.flying = InFlight(began_ns, _NEVER_NS)
    while not setting.waits.given_up:
        setting.ended_waits += 100
        setting.run(100 * _MS)
    assert 10 * _S < setting.now_ns - began_ns < 16 * _S
    setting.window.flying = InFlight(_NEVER_NS, _NEVER_NS)
    for _ in range(200):
        setting.ended_waits += 100
        setting.run(100 * _MS)

    assert 1 == setting.waits.given_up


def test_a_window_whose_probes_went_with_their_keeper_was_not_seen(setting: _Setting) -> None:
    """
    The next one is.
    """
    setting.change(0.5)
    while "place at 2" not in setting.run(10 * _MS):
        pass
    setting.keeper_losses += 1

    assert "take out at 2" == setting.run(600 * _MS)[0]
    assert 1 == setting.waits.missed
    setting.keeper_losses -= 1
    assert "take out at 2" in setting.run(3 * _S)
    assert 1 == setting.waits.missed


def test_what_cannot_be_put_in_is_said_once(
    setting: _Setting, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    And tried again in each spell; each time a window is missed.
    """
    monkeypatch.setattr("gilscope.gil.waits.policy.procfs.is_alive", lambda _pid: True)
    setting.change(0.1)
    setting.window.refuses = True
    setting.run(60 * _S)

    assert 1 == sum("its waits are not seen" in each.message for each in caplog.records)
    assert 12 == pytest.approx(setting.waits.missed, abs=1)
    setting.window.refuses = False
    assert "place at 10" in setting.run(10 * _S)
    assert 12 == pytest.approx(setting.waits.missed, abs=1)
