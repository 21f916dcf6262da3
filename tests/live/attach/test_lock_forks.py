"""Children of processes whose locks alone are traced are looked for at once."""

import select
from contextlib import closing
from pathlib import Path

import pytest

from gilscope.budget.governor import Budget
from gilscope.locks.account import LockAccount
from gilscope.process.watch import ProcessWatch
from gilscope.windows.plan import WindowPlan
from support.interpreters.known import FREE_THREADED, Interpreter
from support.tracing.lock_waits import waits_started

pytestmark = [pytest.mark.live, pytest.mark.beside_others]

_LONG_S = 60
_PLAN = WindowPlan(budget=Budget(0.01))


@pytest.mark.parametrize("interpreter", FREE_THREADED[:1])
def test_a_fork_wakes_who_looks_for_processes(interpreter: Interpreter, sleep_clock: Path) -> None:
    """
    It waits for the ends of processes, of which there is none.
    """
    with (
        ProcessWatch() as watch,
        closing(LockAccount(plan=_PLAN, watch=watch)) as account,
        waits_started(interpreter, sleep_clock, "forks") as workload,
    ):
        account.attach(workload.pid)
        assert ([], [], []) == select.select([watch], [], [], 0)

        workload.command()

        assert ([watch], [], []) == select.select([watch], [], [], _LONG_S)
        assert account.forks > 0
        assert set() == watch.ended()
        workload.answer()
        workload.finish()
