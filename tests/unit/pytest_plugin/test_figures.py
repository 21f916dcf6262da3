"""What a test has lost, and the budget that it may have for that."""

from typing import Any

import pytest

from gilscope.pytest_plugin.figures import Budget, Loss, budget_of, loss_between

_MS = 1_000_000


def _sums(at_ms: int, wait_ms: int, waits: int, **places: int) -> dict[str, Any]:
    return {
        "at_ns": at_ms * _MS,
        "wait_ns": wait_ms * _MS,
        "waits": waits,
        "places": {place: ms * _MS for place, ms in places.items()},
    }


def test_a_loss_is_what_has_come_since() -> None:
    """
    Time, number, duration, and the places where any of it was lost, the costliest first.
    """
    before = _sums(1000, 50, 5, a=30, b=20)
    after = _sums(1500, 250, 25, a=30, b=70, c=170)

    loss = loss_between(before, after)

    assert (200 * _MS, 20, 500 * _MS) == (loss.wait_ns, loss.waits, loss.duration_ns)
    assert [("c", 170 * _MS), ("b", 50 * _MS)] == [*loss.places.items()]
    assert 0.4 == loss.share
    assert "c" == loss.costliest
    assert "200 ms in 20 waits, 40 % of its 500 ms" == str(loss)


def test_lines_of_one_function_are_one_place() -> None:
    """
    By the line that cost the most.
    """
    places = {"f (a.py:3)": 20, "f (a.py:4)": 30, "g (a.py:9)": 40, "(libraries alone)": 5}
    loss = loss_between(_sums(0, 0, 0), _sums(1, 95, 4, **places))

    assert {"f (a.py:4)": 50, "g (a.py:9)": 40, "(libraries alone)": 5} == {
        place: ns // _MS for place, ns in loss.places.items()
    }
    assert "f (a.py:4)" == loss.costliest


def test_nothing_is_never_less_than_nothing() -> None:
    """
    What asking has cost is known a moment later.
    """
    loss = loss_between(_sums(0, 3, 2), _sums(0, 2, 1))

    assert (0, 0, 0.0, "") == (loss.wait_ns, loss.waits, loss.share, loss.costliest)


_LOSS = Loss(200 * _MS, 20, 500 * _MS, {"f (a.py:4)": 150 * _MS})
_LOST = "lost 200 ms in 20 waits, 40 % of its 500 ms waiting for the GIL; its budget is "


@pytest.mark.parametrize(
    ("budget", "said"),
    [
        (Budget(200 * _MS, 0.4), ""),
        (Budget(199 * _MS), "199 ms"),
        (Budget(share=0.39), "39 % of its time"),
        (Budget(0, 0.0), "0 ns and 0 % of its time"),
        (Budget(0, 0.5), "0 ns"),
    ],
)
def test_a_budget_is_passed_by_more(budget: Budget, said: str) -> None:
    """
    The message has the figures, the limits that are passed, and the costliest place.
    """
    expected = f"{_LOST}{said}\ncostliest: 150 ms while f (a.py:4) kept the GIL" if said else ""

    assert expected == budget.passed_by(_LOSS)


def test_a_place_that_is_not_known_is_not_told() -> None:
    """
    One that has more than was lost has it from before.
    """
    assert f"{_LOST}1 ns" == Budget(1).passed_by(Loss(200 * _MS, 20, 500 * _MS))
    assert (
        Budget(1).passed_by(Loss(_MS, 1, _MS, {"f": 3 * _MS})).endswith("1 ms while f kept the GIL")
    )


@pytest.mark.parametrize(
    ("limits", "budget"),
    [
        ({"wait": "100ms"}, Budget(100 * _MS)),
        ({"wait": 0.25, "share": 2}, Budget(250 * _MS, 2.0)),
        ({"share": 0.2}, Budget(share=0.2)),
        ({"share": 0}, Budget(share=0.0)),
        ({"wait": "0", "share": None}, Budget(0)),
    ],
)
def test_a_marker_says_a_budget(limits: dict[str, object], budget: Budget) -> None:
    """
    A time with its unit, or in seconds, and a number.
    """
    assert budget == budget_of(**limits)


@pytest.mark.parametrize(
    ("words", "limits", "said"),
    [
        ((), {}, 'takes wait="100ms", share=0.2, or both'),
        (("100ms",), {}, 'takes wait="100ms"'),
        ((), {"wait": "1s", "time": 3}, 'takes wait="100ms"'),
        ((), {"wait": "long"}, "'long' is not a time such as 10s, 2m or 1h"),
        ((), {"wait": -1}, "'-1' is not a time"),
        ((), {"share": "a lot"}, "share is a number such as 0.2, not 'a lot'"),
        ((), {"share": True}, "share is a number such as 0.2, not True"),
        ((), {"share": float("nan")}, "share is a number such as 0.2, not nan"),
        ((), {"share": -0.1}, "share is a number such as 0.2, not -0.1"),
    ],
)
def test_what_is_no_budget_is_refused(
    words: tuple[object, ...], limits: dict[str, object], said: str
) -> None:
    """
    In words that name the marker.
    """
    with pytest.raises(ValueError, match="gil_budget") as raised:
        budget_of(*words, **limits)

    assert said in str(raised.value)
