"""Tests of what is said about the trial of the real probes."""

import pytest

from gilscope.doctor.probe_trial import Trial, judge_trial, what_prevents
from gilscope.errors import GilscopeError, KernelOrBccMissing, NotPermitted
from gilscope.model.diagnosis import Check, Status


def test_loaded() -> None:
    """
    The seconds are told.
    """
    check = judge_trial(Trial(seconds=0.52))

    assert (Status.OK, "compiled and loaded in 0.5 s") == (check.status, check.found)


def test_loaded_as_they_came() -> None:
    """
    No compiler had to work.
    """
    check = judge_trial(Trial(0.52, is_ahead=True))

    assert (Status.OK, "loaded in 0.5 s, as they came compiled with gilscope") == (
        check.status,
        check.found,
    )


def test_loaded_but_for_what_few_need() -> None:
    """
    CPython is traced all the same.
    """
    failure = KernelOrBccMissing("the kernel refused BPF program walk_turn (Invalid argument)")
    check = judge_trial(Trial(0.52, rare_failure=failure))

    assert Status.WARNING is check.status
    assert check.found.startswith("compiled and loaded in 0.5 s, but for what only PyPy")
    assert check.found.endswith("walk_turn (Invalid argument)")


def test_prevented() -> None:
    """
    What was not tried refers to the reason and does not fail by itself.
    """
    check = judge_trial(Trial(prevented_by="kernel_headers"))

    assert (Status.UNKNOWN, "not compiled: see kernel headers") == (check.status, check.found)


def test_failed_with_a_remedy() -> None:
    """
    The compiler's failure and its remedy are passed on.
    """
    check = judge_trial(Trial(failure=KernelOrBccMissing("no headers", remedy="get some")))

    assert (Status.MISSING, "no headers", "get some", 6) == (
        check.status,
        check.found,
        check.remedy,
        check.exit_code,
    )


def test_loaded_and_not_placed() -> None:
    """
    Programs that were loaded and cannot be placed are of no use.
    """
    check = judge_trial(Trial(0.5, placement_failure=NotPermitted("no uprobe", remedy="ask")))

    assert (Status.MISSING, "no uprobe", "ask", 5) == (
        check.status,
        check.found,
        check.remedy,
        check.exit_code,
    )


def test_not_placed_for_a_known_reason() -> None:
    """
    Where the check of uprobes has the cause, this one refers to it.
    """
    check = judge_trial(Trial(0.5, placement_failure=NotPermitted("no")), uprobes_fail=True)

    assert (Status.UNKNOWN, "compiled and loaded in 0.5 s, and not placed: see uprobes") == (
        check.status,
        check.found,
    )


@pytest.mark.parametrize("error", [KernelOrBccMissing("odd"), NotPermitted("odd")])
def test_failed_without_a_remedy(error: GilscopeError) -> None:
    """
    A remedy that names doctor is of no use to its reader.
    """
    assert "Please report this, with what gilscope doctor prints" == (
        judge_trial(Trial(failure=error)).remedy
    )


@pytest.mark.parametrize(
    ("trial", "can_place"),
    [
        (Trial(seconds=0.5), True),
        (Trial(prevented_by="bcc"), False),
        (Trial(failure=NotPermitted("no")), False),
        (Trial(seconds=0.5, placement_failure=NotPermitted("no")), False),
    ],
)
def test_placing(trial: Trial, *, can_place: bool) -> None:
    """
    Only a trial that went to its end has placed a uprobe.
    """
    assert can_place is trial.can_place_uprobes


def test_what_prevents_it() -> None:
    """
    The first missing prerequisite is named; uprobes are none, for they are tried with the probes.
    """
    uprobes = Check("uprobes", Status.MISSING, "refused")
    bcc = Check("bcc", Status.MISSING, "none")

    assert ["bcc", ""] == [what_prevents((uprobes, bcc)), what_prevents((uprobes,))]
