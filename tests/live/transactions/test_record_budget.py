"""A program whose every call to outside is an event is recorded within the overhead budget."""

import json
import signal
from pathlib import Path

import pytest

from support.commands.gilscope import eventually, gilscope_started
from support.tracing.breakpoints import breakpoints, stm_target
from support.tracing.counted_transactions import TRACING
from support.tracing.stmgc import STMGC
from support.tracing.transactions import StmProgram, built, running

pytestmark = [pytest.mark.live, pytest.mark.beside_others]

_CALLS = 100_000


def _call(program: StmProgram) -> bool:
    return bool(program.tell(f"calls {_CALLS}"))


def test_very_many_small_calls_are_seen_in_windows(tmp_path: Path) -> None:
    """
    The first window ends by itself, with its probes; the report says of how much time it is.
    """
    with running(built(tmp_path, "stmgc", STMGC["E16-pie"]), "1", "1", "log") as program:
        target = stm_target(program.pid)
        line = ("record", "-p", str(program.pid), "--format", "json")
        with gilscope_started(*line) as command:
            command.says(TRACING)
            eventually(lambda: _call(program) and not breakpoints(target))
            command.send(signal.SIGINT)
            outcome = command.outcome()
        target.close()
        assert 0 == program.finish()
    report = json.loads(outcome.output)
    totals = report["totals"]

    assert 0 == outcome.exit_code
    assert 0 < report["observed_s"] < report["duration_s"]
    assert 0 < totals["traps"]
    assert 0 < totals["overhead_s"]
    assert {} == totals["lost_events"]
