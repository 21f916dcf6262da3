"""Transactions under ``gilscope serve``: only where asked for, and within the overhead budget."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gilscope.budget.governor import Budget
from gilscope.process.cpu_time import process_cpu_ns
from support.commands.gilscope import eventually
from support.commands.serve import Scrape, serving
from support.tracing.breakpoints import breakpoints, stm_target
from support.tracing.transactions import ITM, RPYTHON, built, running

pytestmark = pytest.mark.live

_BUDGET = 0.01
_LEAST_CORES = Budget(_BUDGET).least_cores
_OVERHEAD = "gilscope_target_overhead_seconds_total"
_OBSERVED = "gilscope_stm_observed_seconds_total"
_COMMITS = "gilscope_stm_transactions_total"

_PARENT = """
import json, subprocess, sys
pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
children = [subprocess.Popen([program, "1", "1"], **pipes) for program in sys.argv[1:]]
for child in children:
    assert child.stdout.readline() == b"ready\\n"
print(json.dumps([child.pid for child in children]), flush=True)
sys.stdin.read()
for child in children:
    child.kill()
"""


@contextmanager
def _family(*programs: Path) -> Iterator[tuple[int, list[int]]]:
    """Have a Python start *programs*; yield its number, and theirs."""
    with subprocess.Popen(
        [sys.executable, "-c", _PARENT, *programs],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as parent:
        assert parent.stdout is not None
        yield parent.pid, json.loads(parent.stdout.readline())
        parent.communicate()


@pytest.mark.beside_others
@pytest.mark.parametrize("chosen", ["--match", "--pid"])
def test_programs_that_are_no_python_are_traced_only_when_asked_for(
    chosen: str, tmp_path: Path
) -> None:
    """
    By a pattern, or as a child of what was named, PyPy-STM is; GCC's transactions are left alone.
    """
    folders = [tmp_path / name for name in ("first", "second")]
    for folder in folders:
        folder.mkdir()
    programs = (
        built(folders[0], "itm", ITM["shared"]),
        built(folders[1], "rpython", RPYTHON["pie"]),
    )
    with _family(*programs) as (parent, (itm, rpython)):
        target = stm_target(itm)
        asked = (chosen, str(parent) if chosen == "--pid" else os.fspath(tmp_path))
        with serving(*asked) as service:
            # One look has seen them all.
            eventually(lambda: rpython in service.scrape().pids())
            pids, places = service.scrape().pids(), breakpoints(target)
        with serving(*asked, "--transactions") as service:
            eventually(lambda: itm in service.scrape().pids())
            places_when_asked = breakpoints(target)

    assert (True, False, 0) == (rpython in pids, itm in pids, places)
    assert len(target.sites.hooks) == places_when_asked


@pytest.mark.beside_others
def test_what_costs_less_than_the_budget_is_seen_all_the_time(tmp_path: Path) -> None:
    """
    From the start: commits and aborts are exact, and the cost is in the accounts.
    """
    with (
        running(built(tmp_path, "rpython", RPYTHON["pie"]), "1", "1", "log") as program,
        serving("-p", str(program.pid)) as service,
    ):
        for _ in range(3):
            program.tell()
        scrape, pid = service.scrape(), str(program.pid)

    assert 6 == scrape.total(_COMMITS, pid=pid, outcome="commit")
    assert 3 == scrape.total(_COMMITS, pid=pid, outcome="abort")
    assert 0 == scrape.total("gilscope_lost_events_total")
    traps = scrape.total("gilscope_target_traps_total", pid=pid)
    assert 0 < traps == scrape.total("gilscope_agent_traps_total")
    assert 0 < scrape.total(_OVERHEAD, pid=pid)
    assert 0 < scrape.total("gilscope_target_overhead_ratio", pid=pid)
    seen_s = scrape.total(_OBSERVED, window="full")
    assert 0 < scrape.total(_OBSERVED, window="all") <= seen_s


def test_busiest_program_is_traced_within_the_budget(tmp_path: Path) -> None:
    """
    All the time, tracing would take nearly all of its CPU time; in windows it takes 1 %.

    The promise holds whenever a window is opened, for all of the time up to its end.
    """
    with (
        running(built(tmp_path, "itm_busy", ITM["shared"]), "1") as program,
        serving("-p", str(program.pid)) as service,
    ):
        target = stm_target(program.pid)
        program.tell()
        began_s = time.monotonic()
        first = eventually(lambda: _with_commits(service.scrape()))
        # Paid back, and more windows than one after that.
        eventually(lambda: time.monotonic() > began_s + 20)
        before = service.scrape()
        # On a machine that leaves it little CPU time, not much comes in either.
        after = eventually(lambda: _grown(before, service.scrape()), within_s=150)
        eventually(lambda: breakpoints(target) == 0)
        truth = int(program.tell())
        last = service.scrape()
        cpu_s = (process_cpu_ns(program.pid) or 0) / 1e9
        passed_s = time.monotonic() - began_s
        overhead_s = last.total(_OVERHEAD)
        outcome = service.end()

    assert first is not None
    assert after is not None
    assert first.total(_COMMITS) < before.total(_COMMITS) < after.total(_COMMITS) <= truth
    # In seconds in which it uses less than a tenth of a core, that much is granted.
    assert 0 < overhead_s <= _BUDGET * (cpu_s - overhead_s + _LEAST_CORES * passed_s)
    assert 0 < last.total("gilscope_target_overhead_ratio")
    # Begin and commit.
    assert 2 * last.total(_COMMITS, outcome="commit") <= last.total("gilscope_target_traps_total")
    assert last.total(_COMMITS, outcome="commit") == last.total(
        "gilscope_stm_transaction_seconds_count"
    )
    assert 0 == last.total("gilscope_lost_events_total")
    assert 0 < last.total(_OBSERVED, window="full") < last.total(_OBSERVED, window="all") / 4
    assert "they are seen in windows" in outcome.messages


def _with_commits(scrape: Scrape) -> Scrape | None:
    return scrape if scrape.total(_COMMITS) else None


def _grown(before: Scrape, now: Scrape) -> Scrape | None:
    return now if now.total(_COMMITS) > before.total(_COMMITS) else None
