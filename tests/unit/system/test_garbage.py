"""When garbage is collected."""

import gc
import weakref
from collections.abc import Iterator

import pytest

from gilscope.system import garbage
from gilscope.system.garbage import Sweeps, spare_old_objects


class _Cycle:
    """Holds itself."""

    def __init__(self) -> None:
        self.own = self


@pytest.fixture(autouse=True)
def _thresholds() -> Iterator[None]:
    """Leave everything as it was."""
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)
    gc.unfreeze()


def test_old_objects_are_left_alone() -> None:
    """
    Those that are there already, for good. Young ones are not, which are what garbage is made of.
    """
    there = _Cycle()
    spare_old_objects()
    young, middle, old = gc.get_threshold()

    assert gc.isenabled()
    assert 0 < young < 100_000
    assert 0 < middle < 100 < old
    assert gc.get_freeze_count() > 1000
    assert not any(each is there for each in gc.get_objects())


def test_a_sweep_takes_what_holds_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    After five minutes, and not before; and gives back what that has taken.
    """
    times = iter((0.0, 299.0, 300.0, 300.1))
    sweeps = Sweeps(lambda: next(times))
    gc.collect()
    cycle = weakref.ref(_Cycle())
    given_back: list[bool] = []
    monkeypatch.setattr(garbage, "give_back", lambda: given_back.append(cycle() is None))

    assert not sweeps.sweep_if_due()
    assert cycle() is not None
    assert [] == given_back
    assert sweeps.sweep_if_due()
    assert cycle() is None
    assert [True] == given_back


def test_it_rests_by_what_it_took() -> None:
    """
    Five hundred times as long, and five minutes at least.
    """
    times = iter((0.0, 400.0, 401.0, 900.0, 901.5, 901.6, 1200.0, 1202.0, 1202.1))
    sweeps = Sweeps(lambda: next(times))

    assert [True, False, True, False, True] == [sweeps.sweep_if_due() for _ in range(5)]
