"""``gilscope record -- COMMAND`` with a PyPy-STM, and programs that begin to log later."""

import json
import signal
from pathlib import Path

import pytest

from support.commands.gilscope import eventually, gilscope, gilscope_started
from support.tracing.counted_transactions import TRACING
from support.tracing.stmgc import STMGC, truth_of
from support.tracing.transactions import built, running

pytestmark = [pytest.mark.live, pytest.mark.beside_others]


def test_command_is_traced_from_its_first_transaction_on(tmp_path: Path) -> None:
    """
    A shell that becomes a PyPy-STM without a log: all of its commits and aborts.
    """
    program, answer = built(tmp_path, "stmgc", STMGC["E16-fixed-stripped"]), tmp_path / "answer"
    words = tmp_path / "words"
    words.write_text("run\n")
    line = f"exec {program} 12 8 <{words} >{answer}"
    report_file = tmp_path / "report.json"
    outcome = gilscope(
        *("record", "--mode", "full", "--format", f"json={report_file}"), "--", "sh", "-c", line
    )
    report = json.loads(report_file.read_text())
    truth = truth_of(answer.read_text().splitlines()[-1])

    assert 0 == outcome.exit_code, outcome.messages
    assert (truth["committed"]["count"], truth["aborted"]["count"]) == (
        report["totals"]["commits"],
        report["totals"]["aborts"],
    )


def test_program_that_begins_to_log_is_followed_anew(tmp_path: Path) -> None:
    """
    What was seen before stays as it is, and a second report has the events that are logged.
    """
    with running(built(tmp_path, "stmgc", STMGC["E16-pie"]), "12", "8") as program:
        line = ("record", "-p", str(program.pid), "--mode", "full", "--format", "json")
        with gilscope_started(*line) as command:
            command.says(TRACING)
            before = truth_of(program.tell())
            assert "logs" == program.tell("log")
            eventually(lambda: command.messages.count(TRACING) == 2)
            after = truth_of(program.tell())
            command.send(signal.SIGINT)
            outcome = command.outcome()
    first, second = json.loads(outcome.output)["transactions"]
    commits, aborts = (
        after[name]["count"] - before[name]["count"] for name in ("committed", "aborted")
    )

    assert ("entries", "events") == (first["process"]["method"], second["process"]["method"])
    assert "has begun to log" in first["process"]["invalid_reason"]
    assert (before["committed"]["count"], before["aborted"]["count"]) == (
        first["totals"]["commits"],
        first["totals"]["aborts"],
    )
    assert (commits, aborts) == (second["totals"]["commits"], second["totals"]["aborts"])
