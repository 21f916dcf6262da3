"""What full mode does after the keeper has closed all windows."""

import logging

import pytest

from gilscope.gil.tracing.windows import Windows
from support.gil.windows_setting import AUTO, FULL, S, Setting, grant


@pytest.fixture
def setting(monkeypatch: pytest.MonkeyPatch) -> Setting:
    """One process, and a clock that stands still."""
    return Setting(monkeypatch)


def _lapses(setting: Setting) -> None:
    setting.process.lapses()
    setting.probe.lapses += 1


def test_each_step_is_a_sign_of_life(setting: Setting) -> None:
    """
    Windows stay open for as long as somebody looks after them.
    """
    mode = setting.begun(FULL)
    mode.step()
    mode.step()

    assert 2 == setting.probe.beats


def test_full_mode_goes_on_with_another_window(
    setting: Setting, caplog: pytest.LogCaptureFixture
) -> None:
    """
    The time between is not covered, and it is said why.
    """
    mode = setting.begun(FULL)
    setting.works(100)
    _lapses(setting)
    setting.works(3000)
    with caplog.at_level(logging.WARNING):
        mode.step()
        setting.process.probes.finish_closing()
        mode.step()
    setting.works(50)
    window = setting.process.window

    assert window.is_open
    assert 150_000_000 == window.observed_ns(setting.process.now_ns)
    assert [
        "gilscope could not run for 2 s or more; windows were closed, and holds not seen meanwhile"
    ] == caplog.messages


def test_auto_mode_ends_the_window_and_asks_again(setting: Setting) -> None:
    """
    The governor hears that the window is closed, and may grant another.
    """
    mode = _auto(setting)
    _lapses(setting)
    setting.works(3000)
    setting.governor.decisions = [None]
    mode.step()

    assert [False] == [is_open for _, is_open in setting.governor.asked[-1:]]
    assert not setting.process.window.is_open
    setting.process.probes.finish_closing()
    setting.governor.decisions = [grant(10)]
    mode.step()
    assert setting.process.window.is_open


def test_a_window_that_was_opened_since_stays(setting: Setting) -> None:
    """
    The word of the lapse may come later than the next window.
    """
    mode = _auto(setting)
    _lapses(setting)
    setting.process.window.end()
    setting.process.probes.finish_closing()
    setting.process.window.open()
    setting.governor.decisions = [grant(10)]
    mode.step()

    assert setting.process.window.is_open


def _auto(setting: Setting) -> Windows:
    mode = setting.begun(AUTO)
    setting.governor.decisions = [grant(1000)]
    mode.step()
    assert setting.process.window.is_open
    setting.works(S // 1_000_000)
    return mode
