"""Which figures are marked as estimates."""

from dataclasses import replace

import pytest

from gilscope.model.gil import TracingCost
from gilscope.verdict.estimates import about, are_shared_out, is_held_estimated
from support.recordings.gil import observation


@pytest.mark.parametrize(("share", "expected"), [(None, False), (1.0, False), (0.99, True)])
def test_places_are_estimates_where_some_stacks_are_not_read(
    share: float | None, *, expected: bool
) -> None:
    """
    Where none are read there is nothing to be scaled up.
    """
    totals = replace(observation().totals, cost=TracingCost(0, 0.0, 0, stack_share=share))

    assert expected == are_shared_out(totals)


def test_a_process_whose_cost_is_not_known_has_no_estimates() -> None:
    """
    Whoever reads stacks at random knows what they cost.
    """
    assert not are_shared_out(observation().totals)


@pytest.mark.parametrize(
    ("observed", "expected"), [(None, True), (0, True), (89, True), (90, False), (100, False)]
)
def test_held_time_is_an_estimate_but_in_full_mode(observed: int | None, *, expected: bool) -> None:
    """
    Its windows leave nothing out but its first instants.
    """
    assert expected == is_held_estimated(observed, 100)


def test_only_estimates_are_marked() -> None:
    """
    By one sign.
    """
    assert ["≈ ", ""] == [about(is_estimate=True), about(is_estimate=False)]
