"""Whose code held the GIL, from samples."""

import pytest

from gilscope.model.application import EVERYBODYS
from gilscope.model.gil import HeldBy, HolderSamples
from gilscope.model.moment.hold_state import HoldState, State
from gilscope.series.held_by import held_places, share_error
from support.recordings.gil import stack

_S = 1_000_000_000
_RENDER = ("render", "/srv/app.py", 2, 4)
_DUMPS = ("dumps", "/usr/lib/python3.11/json/__init__.py", 183, 231)


def test_a_function_has_all_that_it_called() -> None:
    """
    At the line that was there longest; what is of libraries alone is one place.
    """
    other_line = ("render", "/srv/app.py", 2, 5)
    samples = HolderSamples(
        100,
        10 * _S,
        (
            HeldBy(stack(_DUMPS, _RENDER), 4 * _S),
            HeldBy(stack(_RENDER), 1 * _S),
            HeldBy(stack(other_line), 2 * _S),
            HeldBy(stack(_DUMPS), 1 * _S),
        ),
    )
    render, libraries = held_places(samples, EVERYBODYS)

    assert (0.7, 4) == (render.share, render.frame and render.frame.line)
    assert stack(_DUMPS, _RENDER) == render.costliest
    assert (0.1, None) == (libraries.share, libraries.frame)
    assert pytest.approx(0.093, abs=0.001) == render.error


def test_errors_of_shares() -> None:
    """
    Never zero: what no sample has met may be there, and all samples may have missed something.
    """
    assert pytest.approx(0.102, abs=0.001) == share_error(0.5, 100)
    assert [0.03, 0.03] == [share_error(share, 100) for share in (0.0, 1.0)]
    assert pytest.approx(0.0102, abs=0.0001) == share_error(0.5, 10_000)


def test_calls_of_the_c_code_that_it_was_in_longest() -> None:
    """
    Innermost first, with the function itself; none where they were not asked for.
    """
    deflate = HoldState(State.NATIVE, "libz.so.1 deflate", ("zlib.so",))
    match = HoldState(State.NATIVE, "libz.so.1 longest_match", ("libz.so.1 deflate", "zlib.so"))
    samples = HolderSamples(
        100,
        10 * _S,
        (
            HeldBy(stack(_RENDER), 3 * _S, deflate),
            HeldBy(stack(_RENDER), 4 * _S, match),
            HeldBy(stack(_DUMPS), 1 * _S, HoldState(State.NATIVE, "libz.so.1 deflate")),
        ),
    )
    render, libraries = held_places(samples, EVERYBODYS)

    assert ("libz.so.1 longest_match", "libz.so.1 deflate", "zlib.so") == render.calls
    assert () == libraries.calls
