"""Probes that all processes share which run the same interpreter."""

import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from accuracy.truth import Workload, exact_counts, started
from gilscope.bpf.features import kernel_features
from gilscope.gil.plan import ObservationPlan
from gilscope.gil.probes.probe import GilProbe
from gilscope.gil.target import Target, inspect
from gilscope.gil.tracing.account import GilAccount
from gilscope.model.gil import GilObservation
from gilscope.model.kinds import Mode
from gilscope.process.view import view_of
from gilscope.runtimes.site_cache import SiteCache
from support.commands.gilscope import eventually
from support.interpreters.builds import build
from support.tracing.bpf_tables import held_of
from support.tracing.observations import assert_counts_exactly, thread_of, waits_of
from support.tracing.target_text import BREAKPOINT, text_of
from support.tracing.trace import command_of, looked_after, missed_events, observation_of

pytestmark = [pytest.mark.live, pytest.mark.beside_others]

_PYTHON = "/usr/bin/python3.11"
_SHARED = ObservationPlan(Mode.CONTENTION, shares_probes=True)


@pytest.fixture
def shared(tmp_path: Path) -> Iterator[GilAccount]:
    """Yield who traces with such probes, by programs of its own: only then has it a keeper."""
    with GilProbe() as probe:
        account = GilAccount(probe, SiteCache(tmp_path), plan=_SHARED)
        yield account
        account.close()


def _groups(account: GilAccount) -> int:
    """Return how many groups of probes the keeper holds."""
    keeper = account.probe.keeper_pid
    assert keeper is not None
    held = 0
    for entry in Path(f"/proc/{keeper}/fdinfo").iterdir():
        # One may be closed meanwhile.
        with suppress(FileNotFoundError):
            held += "link_type" in entry.read_text()
    return held


def _programs(target: Target) -> int:
    return len({point.program for point in target.hookpoints})


def _counts_of(account: GilAccount, workload: Workload) -> None:
    """Assert that exact_count.py, which is traced already, is counted to the last wait."""
    assert_counts_exactly(account, workload)


@pytest.mark.parametrize("mode", [Mode.CONTENTION, Mode.FULL])
@pytest.mark.parametrize("name", ["debian-3.11", "pyenv-3.12", "pyenv-3.13"])
def test_each_of_two_is_counted_exactly(
    name: str, mode: Mode, probe: GilProbe, tmp_path: Path
) -> None:
    """
    Each by itself, and the second one though nothing was placed for it any more.
    """
    plan = ObservationPlan(mode, shares_probes=True)
    account = GilAccount(probe, SiteCache(tmp_path), plan=plan)
    command = command_of(build(name))
    with started(command, "exact_count.py") as one, started(command, "exact_count.py") as other:
        account.attach(one.pid)
        account.attach(other.pid)
        _counts_of(account, one)
        assert 0 == waits_of(observation_of(account, other.pid))
        _counts_of(account, other)
        account.close()


def test_the_keeper_holds_each_probe_once(shared: GilAccount) -> None:
    """
    For all who are traced, until the last of them has ended.
    """
    if not kernel_features().uprobe_links:
        pytest.skip("without links the keeper has a perf event for each place")
    with ExitStack() as running:
        workloads = [running.enter_context(started([_PYTHON], "exact_count.py")) for _ in range(5)]
        targets = [shared.attach(each.pid) for each in workloads]
        assert _programs(targets[0]) == _groups(shared)
        for each in workloads[:-1]:
            shared.drop(each.pid)
        assert _programs(targets[0]) == _groups(shared)
        assert BREAKPOINT == text_of(targets[-1])
        _counts_of(shared, workloads[-1])
        shared.drop(workloads[-1].pid)
        eventually(lambda: not _groups(shared))


def test_who_is_not_traced_is_not_counted(shared: GilAccount, tmp_path: Path) -> None:
    """
    It runs into the probes, and leaves nothing behind in any table.
    """
    with (
        started([_PYTHON], "exact_count.py") as traced,
        started([_PYTHON], "exact_count.py") as other,
    ):
        shared.attach(traced.pid)
        assert BREAKPOINT == text_of(inspect(view_of(other.pid), SiteCache(tmp_path)))
        exact_counts(other.run())
        assert {} == held_of(shared.probe, other.pid)
        _counts_of(shared, traced)


def test_who_is_dropped_is_not_counted_any_more(shared: GilAccount) -> None:
    """
    Its breakpoints stay, for the sake of others.
    """
    with (
        started([_PYTHON], "exact_count.py") as dropped,
        started([_PYTHON], "exact_count.py") as other,
    ):
        target = shared.attach(dropped.pid)
        shared.attach(other.pid)
        shared.drop(dropped.pid)
        assert BREAKPOINT == text_of(target)
        exact_counts(dropped.run())
        assert {} == held_of(shared.probe, dropped.pid)
        # Whoever comes to be traced again begins anew.
        shared.attach(dropped.pid)
        assert 0 == waits_of(observation_of(shared, dropped.pid))


def test_a_forked_child_is_traced_without_another_probe(shared: GilAccount) -> None:
    """
    It was born with them, and its parent keeps them.
    """
    with started([_PYTHON], "prefork.py") as workload:
        first, *others = workload.ready["workers"]
        target = shared.attach(first)
        groups = _groups(shared)
        for pid in others:
            shared.attach(pid)
        assert groups == _groups(shared)
        with looked_after(shared):
            workload.command("begin")
            workload.answer()
            for pid in (first, *others):
                eventually(lambda: waits_of(observation_of(shared, pid)) > 20)  # noqa: B023 - it is called here
            workload.command("restart")
            restarted = workload.answer()["restarted"]
            shared.attach(restarted["new"])
            eventually(lambda: waits_of(observation_of(shared, restarted["new"])) > 20)
        assert groups == _groups(shared)
        assert _programs(target) == groups
        workload.command("stop")
        workload.answer()


@pytest.mark.parametrize("how", ["drop", "overwrite"])
def test_code_that_is_written_to_gets_them_back(how: str, shared: GilAccount) -> None:
    """
    No other process notices; the figures of this one begin anew, and say so.
    """
    with (
        started([_PYTHON], "code_changer.py") as workload,
        started([_PYTHON], "exact_count.py") as other,
    ):
        target = shared.attach(workload.pid)
        shared.attach(other.pid)
        groups = _groups(shared)
        eventually(lambda: waits_of(observation_of(shared, workload.pid)) > 3)
        workload.command(how)
        workload.answer()
        assert BREAKPOINT != text_of(target)
        renewed = observation_of(shared, workload.pid)
        assert BREAKPOINT == text_of(target)
        eventually(lambda: waits_of(observation_of(shared, workload.pid)) > 3)
        eventually(lambda: groups == _groups(shared))
        _counts_of(shared, other)

    assert "" == renewed.invalid
    assert 1 == renewed.totals.lost_events["probes_gone"]


def test_after_the_loss_of_the_keeper_all_have_them_again(shared: GilAccount) -> None:
    """
    Each of those who shared them says that they had gone.
    """

    def renewed(pid: int) -> GilObservation | None:
        seen = observation_of(shared, pid)
        return seen if seen.totals.lost_events.get("probes_gone") else None

    with (
        started([_PYTHON], "exact_count.py") as one,
        started([_PYTHON], "exact_count.py") as other,
    ):
        shared.attach(one.pid)
        shared.attach(other.pid)
        groups = _groups(shared)
        keeper = shared.probe.keeper_pid
        assert keeper is not None
        os.kill(keeper, signal.SIGKILL)
        with looked_after(shared):
            for workload in (one, other):
                eventually(lambda: renewed(workload.pid), within_s=20)  # noqa: B023 - it is called here
        assert keeper != shared.probe.keeper_pid
        assert groups == _groups(shared)
        with looked_after(shared):
            truths = [exact_counts(workload.run()) for workload in (one, other)]
        seen = [observation_of(shared, workload.pid) for workload in (one, other)]

    assert [{"probes_gone": 1}] * 2 == [missed_events(each) for each in seen]
    for each, truth in zip(seen, truths, strict=True):
        assert 23 == thread_of(each, truth.waiter.tid).waits


def test_what_everybody_runs_is_shared_by_nobody(probe: GilProbe, tmp_path: Path) -> None:
    """
    By the libc method probes lie in the C library: each has its own, and no other program any.
    """
    account = GilAccount(probe, SiteCache(tmp_path), method="libc", plan=_SHARED)
    with (
        started([_PYTHON], "exact_count.py") as traced,
        started([_PYTHON], "exact_count.py") as other,
    ):
        target = account.attach(traced.pid)
        untouched = inspect(view_of(other.pid), SiteCache(tmp_path), method="libc")
        assert BREAKPOINT == _libc_text(target)
        assert BREAKPOINT != _libc_text(untouched)
        account.close()


def _libc_text(target: Target) -> bytes:
    (point, *_) = target.hookpoints
    view = view_of(target.build.pid)
    (address,) = [
        each.start + point.offset - each.offset
        for each in view.mappings
        if each.executable
        and each.path == target.file.mapping.path
        and each.offset <= point.offset < each.offset + each.end - each.start
    ]
    with Path(f"/proc/{target.build.pid}/mem").open("rb") as memory:
        memory.seek(address)
        return memory.read(1)
