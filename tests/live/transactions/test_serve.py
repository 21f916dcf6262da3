"""``gilscope serve`` on processes with transactions."""

import json
import os
from contextlib import closing
from pathlib import Path

import pytest

from gilscope.gil.probes.probe import GilProbe
from gilscope.gil.probes.program import begin_loading
from gilscope.gil.tracing.account import GilAccount
from gilscope.tracing.tracer import Tracer
from gilscope.transactions.account import TransactionAccount
from support.commands.gilscope import eventually, gilscope
from support.commands.serve import Service, serving
from support.tracing.sites import shared_sites
from support.tracing.transactions import ITM, RPYTHON, built, running

pytestmark = [pytest.mark.live, pytest.mark.beside_others]

_TRANSACTIONS = "gilscope_stm_transactions_total"


def _count(service: Service, pid: int, outcome: str) -> float:
    return service.scrape().total(_TRANSACTIONS, pid=str(pid), outcome=outcome)


def test_transactions_of_a_named_process_are_served(tmp_path: Path) -> None:
    """
    Counters have the exact numbers, round after round, until the process has ended.

    So has a report of the last minutes.
    """
    program_file = built(tmp_path, "rpython", RPYTHON["pie-stripped"])
    with (
        running(program_file, "2", "20", "log") as program,
        serving("-p", str(program.pid), "--mode", "full") as service,
    ):
        for rounds in (1, 2):
            program.tell()
            scrape, pid = service.scrape(), str(program.pid)

            assert 42 * rounds == scrape.total(_TRANSACTIONS, pid=pid, outcome="commit")
            assert 40 * rounds == scrape.total(_TRANSACTIONS, pid=pid, outcome="abort")
            assert 42 * rounds == scrape.total("gilscope_stm_transaction_seconds_count", pid=pid)
            assert 80 * rounds == scrape.total("gilscope_stm_inevitable_total", pid=pid)
            assert 1 == scrape.total("gilscope_probe_valid", pid=pid, method="events")
        outcome = gilscope("snapshot", service.url, "--format", "json")
        assert 84 == json.loads(outcome.output)["totals"]["commits"], outcome.messages
        assert 0 == program.finish()
        assert 84 == _count(service, program.pid, "commit")


def test_programs_are_found_by_their_command_line(tmp_path: Path) -> None:
    """
    What starts later is found, and its library too, though no Python is in it.
    """
    program_file = built(tmp_path, "itm", ITM["shared"])
    asked = ("--match", os.fspath(program_file), "--transactions", "--mode", "full")
    with (
        serving(*asked) as service,
        running(program_file, "2", "50") as program,
    ):
        eventually(lambda: program.pid in service.scrape().pids())
        program.tell()

        assert 300 == _count(service, program.pid, "commit")
        assert 100 == _count(service, program.pid, "cancel")


def test_notice_of_a_program_that_was_attached_meanwhile_drops_nothing(tmp_path: Path) -> None:
    """
    Its exec is told after it was found by itself: what it counts from then on stays.
    """
    program_file = built(tmp_path, "itm", ITM["shared"])
    with GilProbe(begin_loading(discover=True)) as probe:
        gils = GilAccount(probe, shared_sites())
        tracer = Tracer(gils, TransactionAccount())
        with closing(tracer), running(program_file, "2", "50") as program:
            tracer.attach(program.pid)
            assert program.pid not in tracer.tick()
            program.tell()
            (seen,) = [each.transactions for each in tracer.observe() if each.transactions]

    assert seen.totals.committed is not None
    assert 300 == seen.totals.committed.count


def test_end_of_the_log_is_made_up_for(tmp_path: Path) -> None:
    """
    A program that ends its log goes on being counted, by what it calls.
    """
    program_file = built(tmp_path, "rpython", RPYTHON["pie"])
    with (
        running(program_file, "1", "5", "log") as program,
        serving("-p", str(program.pid)) as service,
    ):
        program.tell("close")
        eventually(lambda: service.scrape().total("gilscope_probe_valid", method="entries"))
        program.tell()

        # The last one is in no count until the thread begins another.
        assert 5 == _count(service, program.pid, "commit")
