"""Processes that share their probes on waits, one of which comes to be seen in windows."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from accuracy.truth import Workload, started
from gilscope.bpf.features import kernel_features
from gilscope.gil.plan import ObservationPlan
from gilscope.gil.probes.probe import GilProbe
from gilscope.gil.tracing.account import GilAccount
from gilscope.gil.waits.window import WaitWindow
from gilscope.model.gil import GilObservation
from gilscope.model.kinds import Mode
from gilscope.runtimes.site_cache import SiteCache
from support.commands.gilscope import eventually
from support.tracing.observations import assert_counts_exactly
from support.tracing.target_text import BREAKPOINT, text_of
from support.tracing.trace import looked_after, observation_of

pytestmark = [pytest.mark.live, pytest.mark.beside_others]

_PYTHON = ["/usr/bin/python3.11"]
_PLAN = ObservationPlan(Mode.AUTO, shares_probes=True)
_SOON_S = 60
"""Within which a process that costs too much is seen in windows, and has had some."""


@pytest.fixture(params=["as here", "perf events"])
def account(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[GilAccount]:
    """Yield who traces in auto mode with shared probes, by programs of its own.

    Placed as this kernel has it, or as one without links.
    """
    features = kernel_features()
    if request.param == "perf events":
        features = replace(features, uprobe_links=False)
    with GilProbe(features=features) as probe:
        account = GilAccount(probe, SiteCache(tmp_path), plan=_PLAN)
        yield account
        account.close()


def _window_of(account: GilAccount, workload: Workload) -> WaitWindow:
    traced = account.attached(workload.pid)
    assert traced is not None
    assert traced.wait_window is not None
    return traced.wait_window


@contextmanager
def _fighting(account: GilAccount) -> Iterator[Workload]:
    """Run a process whose waits cost too much."""
    with started(_PYTHON, "fight.py") as workload:
        account.attach(workload.pid)
        yield workload


def _is_in_windows(account: GilAccount, workload: Workload) -> bool:
    cost = observation_of(account, workload.pid).totals.cost
    return cost is not None and cost.waits_unseen_ns > 0


def _come_into_windows(account: GilAccount, workload: Workload) -> None:
    """Return when the waits of *workload* are seen in windows, in a pause between two of them."""
    eventually(lambda: _is_in_windows(account, workload), within_s=_SOON_S)
    _come_into_a_pause(account, workload)


def _come_into_a_pause(account: GilAccount, workload: Workload) -> None:
    window = _window_of(account, workload)
    eventually(lambda: window.is_placed, within_s=_SOON_S)
    eventually(lambda: not window.is_placed, within_s=_SOON_S)


def test_all_others_are_counted_as_ever(account: GilAccount) -> None:
    """
    Those that shared the probes, and those that come later; nobody has any in the end.
    """
    with started(_PYTHON, "exact_count.py") as before, started(_PYTHON, "exact_count.py") as later:
        early = account.attach(before.pid)
        with _fighting(account) as fight:
            with looked_after(account):
                _come_into_windows(account, fight)
            account.attach(later.pid)
            assert BREAKPOINT == text_of(early)
            assert_counts_exactly(account, before)
        assert_counts_exactly(account, later)
        assert not _is_in_windows(account, before)
        account.drop(before.pid)
        eventually(lambda: BREAKPOINT != text_of(early))


def test_one_that_is_dropped_in_a_pause_has_no_probes(account: GilAccount) -> None:
    """
    Nor one that is dropped in a window; and it is traced again like any other.
    """
    with _fighting(account) as fight:
        for is_placed in (False, True):
            target = account.attach(fight.pid)
            assert BREAKPOINT == text_of(target)
            with looked_after(account):
                _come_into_windows(account, fight)
                window = _window_of(account, fight)
                eventually(lambda: window.is_placed == is_placed, within_s=_SOON_S)  # noqa: B023 - it is called here
            account.drop(fight.pid)
            eventually(lambda: BREAKPOINT != text_of(target))  # noqa: B023 - likewise


def test_one_that_ends_in_a_pause_has_ended(account: GilAccount) -> None:
    """
    What was counted of it stays, and others are counted.
    """

    def seen() -> GilObservation:
        return observation_of(account, fight.pid)

    with started(_PYTHON, "exact_count.py") as other:
        account.attach(other.pid)
        with looked_after(account):
            with _fighting(account) as fight:
                _come_into_windows(account, fight)
                before = seen()
                _come_into_a_pause(account, fight)
                os.kill(fight.pid, signal.SIGKILL)
            eventually(lambda: seen().ended, within_s=_SOON_S)
        assert sum(each.waits for each in before.totals.threads) <= sum(
            each.waits for each in seen().totals.threads
        )
        assert_counts_exactly(account, other)


def test_windows_go_on_after_the_loss_of_the_keeper(account: GilAccount) -> None:
    """
    Of a process that had no probes then; one that had some has them again, and says so.
    """
    with started(_PYTHON, "exact_count.py") as other, _fighting(account) as fight:
        account.attach(other.pid)
        with looked_after(account):
            _come_into_windows(account, fight)
            keeper = account.probe.keeper_pid
            assert keeper is not None
            os.kill(keeper, signal.SIGKILL)
            eventually(
                lambda: observation_of(account, other.pid).totals.lost_events.get("probes_gone"),
                within_s=_SOON_S,
            )
            _come_into_windows(account, fight)
        assert keeper != account.probe.keeper_pid
