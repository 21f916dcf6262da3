"""Measures how long ``gilscope serve`` takes until its probes are in place."""

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping

from bench.conditions import Condition
from bench.measurement import Attach, Failure, Start
from bench.rounds import command_for
from bench.tool import ToolFailed, tool_started
from bench.works import IDLE

from accuracy.truth import started
from support.interpreters.interpreter import Interpreter

__all__ = ["measure_attach", "measure_start"]

_NOTHING = "pass"
_MODULES = "import gilscope.commands.serving.agent"


def measure_attach(
    interpreter: Interpreter,
    condition: Condition,
    repeats: int,
    environment: Mapping[str, str],
) -> Iterator[Attach | Failure]:
    """Yield a cold and a warm attach for each repeat; raises WorkloadFailed."""
    with started(interpreter.argv, *IDLE) as workload:
        command = command_for(condition, workload.pid, interpreter)
        for number in range(repeats):
            with tempfile.TemporaryDirectory() as empty:
                fresh = {**environment, "XDG_CACHE_HOME": empty}
                for is_cold in (True, False):
                    try:
                        with tool_started(command, condition.marker, fresh) as tool:
                            pass
                    except ToolFailed as error:
                        yield Failure(number, "attach", condition.key, str(error))
                    else:
                        yield Attach(interpreter.name, is_cold, tool.attach_ns)
        workload.finish()


def measure_start(environment: Mapping[str, str]) -> Start:
    """Return what Python and the agent's modules take, as each attach does."""
    return Start(*(_run_ns(code, environment) for code in (_NOTHING, _MODULES)))


def _run_ns(code: str, environment: Mapping[str, str]) -> int:
    # To tidy up in the end is no part of a start.
    command = [sys.executable, "-c", f"{code}; import os; os._exit(0)"]
    began_ns = time.monotonic_ns()
    subprocess.run(command, check=True, env=environment)
    return time.monotonic_ns() - began_ns
