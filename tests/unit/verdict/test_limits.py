"""Limits that a recording, or a change, must not pass."""

import math

import pytest

from gilscope.verdict.figures import Figures
from gilscope.verdict.limits import change_of, limit

_BEFORE = Figures(10.0, 0.5, convoys_per_s=20.0, wait_p99_s=0.016)
_AFTER = Figures(10.0, 0.6, convoys_per_s=None, wait_p99_s=math.inf, longest_drop_s=0.03)


def _passed(words: str, *, before: Figures | None = None) -> str:
    return limit(words, has_before=before is not None).passed_by(_AFTER, before)


def test_a_figure_that_passes_its_limit_is_named() -> None:
    """
    With what it is, and the limit as it was written.
    """
    assert "waiting is 0.6: waiting>0.5" == _passed("waiting>0.5")
    assert "longest_drop is 0.03: longest_drop >= 30ms" == _passed("longest_drop >= 30ms")
    assert "wait_p99 is inf: wait_p99 > 1s" == _passed(" wait_p99 > 1s ")
    assert ["", ""] == [_passed("waiting > 0.6"), _passed("longest_drop < 10000us")]


def test_changes_are_relative() -> None:
    """
    To what was before; from nothing to something is more than any limit.
    """
    assert "waiting change is +20.0 %: waiting change > 10%" == _passed(
        "waiting change > 10%", before=_BEFORE
    )
    assert "" == _passed("waiting change > 0.25", before=_BEFORE)
    assert "longest_drop change is +inf %: longest_drop change > 50%" == _passed(
        "longest_drop change > 50%", before=_BEFORE
    )
    assert "" == _passed("waiting change < -10%", before=_BEFORE)


def test_what_is_not_known_passes_nothing() -> None:
    """
    Neither a figure nor its change.
    """
    assert ["", ""] == [
        _passed("convoys >= 0"),
        _passed("convoys change >= -100%", before=_BEFORE),
    ]


@pytest.mark.parametrize(
    ("before", "now", "change"),
    [(2.0, 3.0, 0.5), (2.0, 0.0, -1.0), (0.0, 0.0, 0.0), (0.0, 1.0, math.inf), (None, 1.0, None)],
)
def test_change_is_a_part_of_what_was_before(
    before: float | None, now: float, change: float | None
) -> None:
    """
    0 and infinity included.
    """
    assert change == change_of(before, now)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("", "is no limit such as"),
        ("waiting", "is no limit such as"),
        ("waiting == 1", "is no limit such as"),
        ("waiting > x", "is no limit such as"),
        ("waiting > 1; import os", "is no limit such as"),
        ("waiting > 1" + " " * 300, "is no limit such as"),
        ("speed > 1", "there is no figure 'speed'"),
        ("waiting change > 1", "gilscope diff compares two"),
        ("waiting > 1s", "is no time"),
    ],
)
def test_what_is_no_limit_is_refused(words: str, reason: str) -> None:
    """
    With what would be one.
    """
    with pytest.raises(ValueError, match=reason):
        limit(words, has_before=False)
