"""What ``gilscope record --format json`` says of a program whose waits have known ends."""

import signal

import pytest

from accuracy.blame_truth import TrueEdge, true_edges
from accuracy.truth import started
from gilscope.model.stack import Stack
from support.commands.gilscope import gilscope_started
from support.commands.json_reports import assert_consistent, frames_of, only_process
from support.interpreters.known import find_interpreter
from support.tracing.trace import command_of

pytestmark = pytest.mark.live

_INTERPRETERS = ("pyenv-3.8-stripped", "debian-3.13")


@pytest.mark.parametrize("mode", ["contention", "full"])
@pytest.mark.parametrize("name", _INTERPRETERS)
def test_report_names_both_ends_of_every_wait(name: str, mode: str) -> None:
    """
    Edges have whole stacks, innermost frame first, and add up to the time that was lost.
    """
    with (
        started(command_of(find_interpreter(name)), "blame_holders.py") as workload,
        gilscope_started(
            "record", "-p", str(workload.pid), "--mode", mode, "--format", "json"
        ) as command,
    ):
        command.says("Tracing the GIL of")
        workload.command("c_call")
        (truth,) = true_edges(workload.answer())
        workload.await_rest()
        command.send(signal.SIGINT)
        outcome = command.outcome()
    report = only_process(outcome.output)
    theirs = [
        each
        for each in report["edges"]
        if _frames(truth.waiter) == frames_of(report, each["waiter"])
    ]
    (edge,) = [
        each for each in theirs if _frames(truth.holder) == frames_of(report, each["holder"])
    ]
    (slow_drop,) = report["slow_drops"]

    assert 0 == outcome.exit_code
    assert_consistent(report)
    assert "GIL_CONVOY" == edge["kind"]
    assert edge["holder"] == slow_drop["holder"]
    assert 2 == truth.lost.count == edge["waits"] == slow_drop["requests"]
    assert edge["wait_s"] == pytest.approx(_seconds(truth), rel=0.01)
    # The main thread may be in the way for an instant, when it lets the two begin.
    assert sum(each["wait_s"] for each in theirs) == pytest.approx(_seconds(truth), rel=0.01)
    assert report["totals"]["wait_s"] == pytest.approx(
        sum(each["wait_s"] for each in report["edges"]), rel=1e-6, abs=1e-6
    )


def _frames(stack: Stack) -> list[dict[str, object]]:
    return [
        {
            "function": frame.function,
            "file": frame.file,
            "line": frame.line,
            "first_line": frame.first_line,
        }
        for frame in stack.frames
    ]


def _seconds(edge: TrueEdge) -> float:
    return edge.lost.ns / 1e9
