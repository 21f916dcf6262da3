"""``gilscope top`` with a PyPy-STM: its transactions stand where a GIL's figures would."""

from pathlib import Path

import pytest

from support.commands.terminal import in_terminal
from support.tracing.stmgc import STMGC, truth_of
from support.tracing.transactions import built, running

pytestmark = [pytest.mark.live, pytest.mark.beside_others]


def test_transactions_are_shown(tmp_path: Path) -> None:
    """
    In full mode, each commit and abort of it, what these have cost, and what was waited for.
    """
    with (
        running(built(tmp_path, "stmgc", STMGC["E16-pie"]), "12", "8", "log") as program,
        in_terminal("top", "-p", str(program.pid), "--mode", "full", "--interval", "0.2") as view,
    ):
        view.shows(f"Transactions of stmgc ({program.pid})", "1 traced")
        truth = truth_of(program.tell())
        commits, aborts = truth["committed"]["count"], truth["aborted"]["count"]
        text = view.shows(f"{commits} commits, seen", f"in aborts, {aborts} tries")

        assert f" s ({truth['STM_WAIT_OTHER_INEVITABLE']['count']}x)" in text
        assert "inevitable by" in text
        assert "12x stmgc" in text
        assert "commits/s" in text
        view.press("q")
        assert 0 == view.exit_code()
        assert 0 == program.finish()
