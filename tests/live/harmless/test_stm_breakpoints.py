"""Probes of transactions in memory that changes: in children, and in code that is dropped."""

from pathlib import Path

import pytest

from gilscope.process.view import view_of
from gilscope.transactions.account import TransactionAccount
from support.commands.gilscope import eventually
from support.tracing.breakpoints import breakpoints, stm_target
from support.tracing.transactions import ITM, built, running

pytestmark = [pytest.mark.live, pytest.mark.beside_others]


def test_a_forked_child_runs_free_of_breakpoints(tmp_path: Path) -> None:
    """
    It has its parent's memory, but nobody traces it; its parent stays traced.
    """
    with running(built(tmp_path, "itm_changer", ITM["shared"])) as program:
        tracer, target = TransactionAccount(), stm_target(program.pid)
        tracer.attach(target, view_of(program.pid))
        for _ in range(3):
            child = int(program.tell("fork"))
            # From here on nothing is put in any more, only taken out.
            assert len(target.sites.hooks) == breakpoints(target)

            def is_free(child: int = child) -> bool:
                tracer.tick()
                return breakpoints(target, child) == 0

            eventually(is_free, within_s=10)
            assert len(target.sites.hooks) == breakpoints(target)
        assert [""] == [seen.invalid for seen in tracer.observe()]
        tracer.close()


def test_probes_that_have_gone_are_noticed(tmp_path: Path) -> None:
    """
    A program that drops its code shows no transactions any more, and it is said why.
    """
    with running(built(tmp_path, "itm_changer", ITM["shared"])) as program:
        tracer, target = TransactionAccount(), stm_target(program.pid)
        tracer.attach(target, view_of(program.pid))
        assert [""] == [seen.invalid for seen in tracer.observe()]
        assert "0" == program.tell("drop")
        assert 0 == breakpoints(target)
        (seen,) = tracer.observe()
        tracer.close()

    assert seen.invalid.startswith("its probe at 0x")
    assert seen.invalid.endswith("has gone: something writes over its code")
