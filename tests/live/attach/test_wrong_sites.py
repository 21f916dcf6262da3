"""Probes that are not where they should be give no numbers."""

from dataclasses import replace
from pathlib import Path

import pytest

from accuracy.truth import known_waits, started
from gilscope.elf.image import ElfImage
from gilscope.gil.target import Target, inspect
from gilscope.gil.tracing import attachments
from gilscope.gil.tracing.account import GilAccount
from gilscope.process.view import ProcessView, view_of
from gilscope.runtimes.site_cache import SiteCache
from gilscope.runtimes.sites import PausePoint
from support.tracing.bpf_tables import held_of
from support.tracing.observations import assert_counts_exactly, thread_of
from support.tracing.target_text import BREAKPOINT, text_of
from support.tracing.trace import looked_after, observation_of

pytestmark = pytest.mark.live

_PYTHON = "/usr/bin/python3.11"


@pytest.fixture
def site_cache(tmp_path: Path) -> SiteCache:
    """One that no other test shares, for lies are told to it."""
    return SiteCache(tmp_path / "sites")


def _with_wrong_waits(target: Target, cache: SiteCache) -> None:
    """Let the cache say that a signal is a wait: what it is called with is no GIL's cond."""
    assert target.sites is not None
    wrong = tuple(
        PausePoint(site, pause.after)
        for site, pause in zip(target.sites.acquires, target.sites.waits, strict=False)
    )
    image = ElfImage(Path(target.file.path).read_bytes())
    cache.store(image, replace(target.sites, waits=wrong))


def test_wrong_site_gives_no_numbers(tracer: GilAccount, site_cache: SiteCache) -> None:
    """
    A probe that is not at a wait for the GIL is noticed at its first event: a reason, no numbers.
    """
    with started([_PYTHON], "exact_count.py") as workload:
        _with_wrong_waits(inspect(view_of(workload.pid), site_cache), site_cache)
        only_sites = GilAccount(tracer.probe, site_cache, method="sites")
        target = only_sites.attach(workload.pid)
        with looked_after(only_sites):
            workload.run()
        observation = observation_of(only_sites, workload.pid)

        assert observation.invalid.startswith("what the probes saw is not a GIL's (invalid_")
        assert () == observation.totals.threads
        assert () == observation.totals.gils
        assert BREAKPOINT != text_of(target)
        assert {} == held_of(tracer.probe, workload.pid)
        assert 0 == workload.finish()
        only_sites.drop(workload.pid)


def test_wrong_site_is_replaced_by_the_other_method(
    tracer: GilAccount, site_cache: SiteCache
) -> None:
    """
    Where the sites fail their check and libc may be probed, its numbers are shown, and are right.
    """
    arguments = ("known_waits.py", "--seconds", "2", "--threads", "hog,spinner")
    with started([_PYTHON], *arguments) as workload:
        _with_wrong_waits(inspect(view_of(workload.pid), site_cache), site_cache)
        tracer.attach(workload.pid)
        with looked_after(tracer):
            truth = known_waits(workload.run())
        observation = observation_of(tracer, workload.pid)
        workload.finish()

    assert "libc" == observation.process.method
    assert "" == observation.invalid
    for thread in truth.threads:
        # What came before the change of method is lost, and nothing else.
        share = thread_of(observation, thread.tid).wait_ns / thread.total.wait_ns
        assert 0.1 < share < 1.02


def test_lock_that_looks_like_a_gil_gives_no_numbers(
    tracer: GilAccount, site_cache: SiteCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Waits on something with all signs of a GIL, but not one of the interpreter's, are not believed.
    """

    def inspect_libc(view: ProcessView, cache: SiteCache, *, method: str) -> Target:
        assert "sites" == method
        target = inspect(view, cache, method="libc")
        points = tuple(
            replace(point, program="on_wait")
            for point in target.hookpoints
            if point.program == "on_libc_wait"
        )
        process = replace(target.process, method="sites")
        return replace(target, hookpoints=points, process=process)

    monkeypatch.setattr(attachments, "inspect", inspect_libc)
    only_sites = GilAccount(tracer.probe, site_cache, method="sites")
    with started([_PYTHON], "foreign_condvars.py", "--seconds", "0.5") as workload:
        only_sites.attach(workload.pid)
        with looked_after(only_sites):
            workload.run()
        observation = observation_of(only_sites, workload.pid)
        workload.finish()
        only_sites.drop(workload.pid)

    assert "" != observation.invalid
    assert () == observation.totals.threads
    assert () == observation.totals.gils


def test_damaged_cache_is_not_believed(
    tracer: GilAccount, site_cache: SiteCache, tmp_path: Path
) -> None:
    """
    Sites that are not what was remembered are looked for again.
    """
    with started([_PYTHON], "exact_count.py") as workload:
        sites = inspect(view_of(workload.pid), site_cache).sites
        assert sites is not None
        (entry,) = (tmp_path / "sites").iterdir()
        good, offset = entry.read_text(), sites.waits[0].call.offset
        entry.write_text(good.replace(str(offset), str(offset + 1)))
        assert good != entry.read_text()
        tracer.attach(workload.pid)

        assert_counts_exactly(tracer, workload)
        assert good == entry.read_text()
