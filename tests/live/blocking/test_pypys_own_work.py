"""What PyPy does for itself while a thread keeps its GIL, against PyPy's own clocks."""

from collections import Counter
from typing import Any

import pytest

from accuracy.truth import Answer, started
from support.commands.gilscope import gilscope
from support.commands.json_reports import frames_of, only_process
from support.interpreters.known import TIMED_PYPYS, Interpreter
from support.tracing.trace import command_of

pytestmark = [pytest.mark.live, pytest.mark.beside_others]

_SECONDS = "8"
_WITH_YOUNG_OF_4_MB = ("env", "PYPY_GC_NURSERY=4M")
"""The nursery. Otherwise PyPy makes it as large as a part of the processor's cache, which may be of
any size."""
_OFF = 0.2
"""Of a share of the time: four standard deviations of one that is told by eighty samples."""


def _recorded(reason: str, interpreter: Interpreter) -> tuple[dict[str, float], Answer]:
    """Return what the function called *reason* was in, as shares of what it cost, and the truth."""
    function = "compute" if reason == "beside" else reason
    command = (*_WITH_YOUNG_OF_4_MB, *command_of(interpreter))
    with started(command, "pypys_own_work.py", reason) as workload:
        outcome = gilscope(
            *("record", "-p", str(workload.pid), "--no-children"),
            *("-d", _SECONDS, "--format", "json"),
        )
        truth = workload.run()
        workload.finish()
    assert 0 == outcome.exit_code, outcome.messages
    report: dict[str, Any] = only_process(outcome.output)
    lost_s: Counter[str] = Counter()
    for each in report["held_up"]:
        if function in {frame["function"] for frame in frames_of(report, each["holder"])}:
            lost_s[each["state"]] += each["wait_s"]
    whole_s = lost_s.total() - lost_s["no_cpu"]
    assert whole_s > 0.1
    return {state: lost_s[state] / whole_s for state in ("gc", "jit", "python")}, truth


@pytest.mark.parametrize("interpreter", TIMED_PYPYS)
def test_compilation_is_told(interpreter: Interpreter) -> None:
    """
    PyPy's JIT follows code, and translates it, in the function that has made it.
    """
    told, truth = _recorded("translate", interpreter)

    assert truth["compiled"] > 0.5
    assert told["jit"] == pytest.approx(truth["compiled"], abs=_OFF)


@pytest.mark.parametrize("interpreter", TIMED_PYPYS)
def test_a_collection_that_is_asked_for_is_told(interpreter: Interpreter) -> None:
    """
    And is not taken for compilation.
    """
    told, truth = _recorded("collect", interpreter)

    assert truth["collected"] > 0.9
    assert told["gc"] >= 0.95
    assert told["jit"] <= 0.01


@pytest.mark.parametrize("interpreter", TIMED_PYPYS)
def test_collections_by_themselves_are_told(interpreter: Interpreter) -> None:
    """
    Of the young and of all, of what a function makes.
    """
    told, truth = _recorded("allocate", interpreter)

    assert truth["collected"] > 0.5
    assert told["gc"] == pytest.approx(truth["collected"], abs=_OFF)
    assert told["jit"] <= 0.01


@pytest.mark.parametrize("interpreter", TIMED_PYPYS)
def test_a_loop_that_is_warm_runs_python_code(interpreter: Interpreter) -> None:
    """
    What PyPy has compiled is as good as Python code.
    """
    told, truth = _recorded("compute", interpreter)

    assert truth["compiled"] + truth["collected"] <= 0.02
    assert told["python"] >= 0.95


@pytest.mark.parametrize("interpreter", TIMED_PYPYS)
def test_a_loop_that_is_followed_into_a_sleep_is_not_the_holders(interpreter: Interpreter) -> None:
    """
    It has released the GIL meanwhile, and whoever has it compiles nothing.
    """
    told, truth = _recorded("beside", interpreter)

    assert truth["compiled"] > 0.2
    assert told["python"] >= 0.95
