"""How people read why the GIL was kept."""

import pytest

from gilscope.model.moment.hold_state import HoldState, State
from gilscope.naming.hold_states import (
    STATE_WORDS,
    advice,
    calls_words,
    telling_states,
    why_in_short,
    why_words,
)

_GC = HoldState(State.GC, "generation 2")
_YOUNG = HoldState(State.GC, "generation 0")
_PYTHON = HoldState(State.PYTHON)
_NO_CPU = HoldState(State.NO_CPU)


def test_states_of_a_kind_are_added_up() -> None:
    """
    Under the detail that most of it has, the most time first.
    """
    assert (
        (State.GC, "generation 2", 7),
        (State.PYTHON, "", 6),
    ) == telling_states([(_YOUNG, 2), (_PYTHON, 6), (_GC, 5)])


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ([(_GC, 60), (_NO_CPU, 40)], "≈ 60 % garbage collection (generation 2), 40 % no CPU"),
        ([(_PYTHON, 96), (_GC, 4)], ""),
        ([(_PYTHON, 90), (_GC, 10)], "≈ 90 % Python code, 10 % garbage collection (generation 2)"),
        ([(_PYTHON, 50), (HoldState(State.UNKNOWN), 50)], ""),
        ([], ""),
    ],
)
def test_what_one_would_think_is_not_told(
    parts: list[tuple[HoldState, int]], expected: str
) -> None:
    """
    Python code alone, and what hardly matters.
    """
    assert expected == why_words(telling_states(parts))


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ([(_PYTHON, 60), (_GC, 25), (_NO_CPU, 15)], "≈ 25 % garbage collection"),
        ([(_PYTHON, 81), (_GC, 19)], ""),
        ([], ""),
    ],
)
def test_in_short_the_costliest_other_state_is_told(
    parts: list[tuple[HoldState, int]], expected: str
) -> None:
    """
    If it makes up a fifth: a line of a screen has no more room.
    """
    assert expected == why_in_short(telling_states(parts))


@pytest.mark.parametrize("state", State)
def test_each_state_has_advice_of_its_own(state: State) -> None:
    """
    But for the one that is not known, which has that of Python code.
    """
    first, *_ = advice(telling_states([(HoldState(state), 1)]))
    others = {
        advice(telling_states([(HoldState(other), 1)]))[0] for other in State if other is not state
    }

    assert first.startswith("What helps: ")
    assert (first in others) == (state in {State.PYTHON, State.UNKNOWN})
    assert set(STATE_WORDS) == set(State)


def test_pypys_collector_and_jit_have_advice_of_their_own() -> None:
    """
    Its collector has no freeze() and no thresholds; its JIT is nobody else's.
    """
    collector, jit, python = (
        advice(((state, "", 1),), "pypy") for state in (State.GC, State.JIT, State.PYTHON)
    )

    assert len({collector, jit, python}) == 3
    assert "PYPY_GC_NURSERY" in " ".join(collector)
    assert "gc.freeze" not in " ".join(collector)
    assert jit == advice(((State.JIT, "", 1),))


def test_the_costliest_known_state_decides_on_the_advice() -> None:
    """
    Nothing is known of nothing.
    """
    assert advice(telling_states([(_GC, 3), (_PYTHON, 2)])) == advice(((State.GC, "", 1),))
    assert advice(()) == advice(((State.PYTHON, "", 1),))


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        (["libz.so.1 deflate"], "deflate (libz.so.1)"),
        (["z longest", "z deflate", "zlib.so"], "longest < deflate (z) < (zlib.so)"),
        (["a f", "b", "a f"], "f (a) < (b) < f (a)"),
        (["a f"] * 7, "f < f < f < f < f < f (a) < ..."),
        ([], ""),
    ],
)
def test_calls_in_a_row(calls: list[str], expected: str) -> None:
    """
    Innermost first, with the file behind the last function of it.
    """
    assert expected == calls_words(calls)
