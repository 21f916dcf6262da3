"""Windows in real processes: what they leave behind, and what their edges do to the numbers."""

from collections.abc import Iterator
from concurrent.futures import wait
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest

from accuracy.truth import Workload, started
from gilscope.bpf.features import Features
from gilscope.gil.abi import NoticeKind
from gilscope.gil.probes.probe import GilProbe
from gilscope.gil.probes.window import Window
from gilscope.gil.probes.window_probes import WindowSites
from gilscope.gil.target import Target
from gilscope.gil.tracing.account import GilAccount
from gilscope.model.gil import GilObservation
from gilscope.model.histogram import Histogram
from gilscope.runtimes.site_cache import SiteCache
from support.commands.gilscope import eventually
from support.interpreters.builds import build
from support.tracing.full_mode import assert_sound, held_by, holds_of, observed_ns
from support.tracing.observations import thread_of
from support.tracing.target_text import BREAKPOINT, text_of
from support.tracing.trace import command_of, observation_of

pytestmark = pytest.mark.live

_PYTHON = "debian-3.11"


def _descriptors(probe: GilProbe) -> int:
    """Return how many are open here and in the keeper."""
    keeper_pid = probe._uprobes.keeper_pid  # noqa: SLF001 - nobody else has to know
    return sum(1 for pid in ("self", keeper_pid) for _ in Path(f"/proc/{pid}/fd").iterdir())


class _Driven(NamedTuple):
    """A process whose windows the test opens and ends by itself."""

    tracer: GilAccount
    target: Target
    window: Window
    workload: Workload

    def seen(self) -> GilObservation:
        """Return what has been counted until now."""
        return observation_of(self.tracer, self.workload.pid)


@contextmanager
def _driven(probe: GilProbe, folder: Path, script: str, *arguments: str) -> Iterator[_Driven]:
    tracer = GilAccount(probe, SiteCache(folder / "sites"))
    with started(command_of(build(_PYTHON)), script, *arguments) as workload:
        target = tracer.attach(workload.pid)
        traced = tracer._processes.by_pid[workload.pid]  # noqa: SLF001 - it opens windows by itself only
        sites = WindowSites(
            traced.hooks(target.acquires), traced.hooks(target.releases), inside_hold_ns=0
        )
        traced.window = window = probe.window(workload.pid, sites, traced.runtime.locks)
        yield _Driven(tracer, target, window, workload)
        wait(window.close())
        tracer.close()
        tracer.drop(workload.pid)


@pytest.fixture(scope="module", params=[True, False], ids=["links", "perf events"])
def any_probe(request: pytest.FixtureRequest) -> Iterator[GilProbe]:
    """The probes in both ways of placing them."""
    with GilProbe(features=Features(uprobe_links=request.param)) as loaded:
        yield loaded


def _await_settled(window: Window) -> None:
    def is_settled() -> bool:
        window.settle()
        return window.can_open and not window.is_lingering

    eventually(is_settled, within_s=30)


@pytest.mark.slow
@pytest.mark.beside_others
def test_many_windows_leave_nothing_open(any_probe: GilProbe, tmp_path: Path) -> None:
    """
    However often one opens and ends, as many descriptors are open afterwards as before.
    """
    # Each event is taken out by itself, which takes the kernel much longer.
    windows = 200 if any_probe.features.uprobe_links else 15
    with _driven(any_probe, tmp_path, "hold_long.py") as driven:
        before = _descriptors(any_probe)
        for _ in range(windows):
            driven.window.open()
            assert _descriptors(any_probe) > before
            driven.window.end()
            _await_settled(driven.window)

        assert before == _descriptors(any_probe)
        assert_sound(driven.seen())
        assert 0 < observed_ns(driven.seen())


def test_the_code_is_as_it_was_after_a_window(probe: GilProbe, tmp_path: Path) -> None:
    """
    While one is open there are breakpoints at the sites, afterwards none.
    """
    with _driven(probe, tmp_path, "hold_long.py") as driven:

        def is_probed() -> list[bool]:
            programs = ("on_acquire", "on_release", "on_wait")
            return [BREAKPOINT == text_of(driven.target, program) for program in programs]

        assert [False, False, True] == is_probed()
        driven.window.open()
        assert [True, True, True] == is_probed()
        wait(driven.window.close())
        assert [False, False, True] == is_probed()


def test_release_sites_stay_probed_while_a_hold_is_followed_on(
    probe: GilProbe, tmp_path: Path
) -> None:
    """
    The hold outlasts its window, is whole when it ends, and then the last probes go.
    """
    with _driven(probe, tmp_path, "hold_long.py") as driven:
        window, workload = driven.window, driven.workload
        window.open()
        workload.command("hold 0.5")
        workload.answer()
        window.end()
        eventually(lambda: BREAKPOINT != text_of(driven.target, "on_acquire"), within_s=10)
        assert window.is_lingering
        assert BREAKPOINT == text_of(driven.target, "on_release")
        during = driven.seen()
        ((from_ns, until_ns),) = workload.answer()["holds"]
        workload.await_rest()
        after = driven.seen()
        _await_settled(window)
        assert BREAKPOINT != text_of(driven.target, "on_release")
    before_it, with_it = (_finished(seen) for seen in (during, after))

    assert_sound(after)
    assert 1 == with_it.count - before_it.count
    assert with_it.sum_ns - before_it.sum_ns >= until_ns - from_ns
    # It has counted up to the window's end, and no further.
    assert _held_ns(during) == _held_ns(after)
    assert observed_ns(during) == observed_ns(after)


@pytest.mark.parametrize("is_seen_to_begin", [True, False])
def test_a_hold_over_many_windows_fills_each(
    probe: GilProbe, tmp_path: Path, *, is_seen_to_begin: bool
) -> None:
    """
    From look to look as much held time is added as windows have covered, to the nanosecond.
    """
    with _driven(probe, tmp_path, "hold_long.py") as driven:
        window, workload = driven.window, driven.workload
        if is_seen_to_begin:
            window.open()
        workload.command("hold 2")
        workload.answer()
        if not is_seen_to_begin:
            window.open()
        seen = [driven.seen()]
        for _ in range(5):
            window.end()
            eventually(lambda: window.can_open, within_s=10)
            seen.append(driven.seen())
            window.open()
            seen.append(driven.seen())
        window.end()
        seen.append(driven.seen())
        workload.answer()
        workload.await_rest()
        seen.append(driven.seen())
    first, last = seen[0], seen[-1]

    assert_sound(last)
    for before, now in pairwise(seen):
        covered_ns = observed_ns(now) - observed_ns(before)
        assert covered_ns == _held_ns(now) - _held_ns(before)
        tid = workload.ready["holder"]
        assert covered_ns == (held_by(thread_of(now, tid)).ns - held_by(thread_of(before, tid)).ns)
    assert is_seen_to_begin == _finished(last).count - _finished(first).count


def _finished(seen: GilObservation) -> Histogram:
    (gil,) = seen.totals.gils
    return holds_of(gil).finished


def _held_ns(seen: GilObservation) -> int:
    (gil,) = seen.totals.gils
    return holds_of(gil).held_ns


def test_a_window_ends_by_itself_when_its_traps_are_used_up(
    any_probe: GilProbe, tmp_path: Path
) -> None:
    """
    Of a thread that goes on for longer no further hold is counted, and notice is given.
    """
    arguments = ["--threads", "busy", "--rounds", "20011"]
    with _driven(any_probe, tmp_path, "held_known.py", *arguments) as driven:
        list(any_probe.notices())
        driven.window.open(allowed_traps=1000)
        driven.workload.run()
        driven.workload.await_rest()
        assert driven.window.has_used_up
        first = driven.seen()
        driven.window.end()
        second = driven.seen()
        notices = [notice.pid for notice in any_probe.notices() if notice.kind is NoticeKind.WINDOW]

    assert_sound(second)
    # Each of the holds made two traps.
    assert _finished(first).count == pytest.approx(500, abs=2)
    assert driven.window.traps() > 40_000
    assert driven.workload.pid in notices
    assert (_finished(first), _held_ns(first), observed_ns(first)) == (
        _finished(second),
        _held_ns(second),
        observed_ns(second),
    )
    assert _held_ns(second) <= observed_ns(second)
