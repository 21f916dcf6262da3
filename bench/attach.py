"""Measures how long ``gilscope serve`` takes until its probes are in place."""

import tempfile
from collections.abc import Iterator, Mapping

from bench.conditions import GILSCOPE, Target, gilscope_command
from bench.measurement import Attach
from bench.tool import tool_started
from bench.works import IDLE

from accuracy.truth import started
from interpreter_sources.interpreter import Interpreter

__all__ = ["measure_attach"]


def measure_attach(
    interpreter: Interpreter, repeats: int, environment: Mapping[str, str]
) -> Iterator[Attach]:
    """Yield a cold and a warm attach for each repeat; raises ToolFailed and WorkloadFailed."""
    with started(interpreter.argv, *IDLE) as workload:
        command = gilscope_command(Target(workload.pid, interpreter.elf))
        for _ in range(repeats):
            with tempfile.TemporaryDirectory() as empty:
                fresh = {**environment, "XDG_CACHE_HOME": empty}
                for is_cold in (True, False):
                    with tool_started(command, GILSCOPE.marker, fresh) as tool:
                        pass
                    yield Attach(interpreter.name, is_cold, tool.attach_ns)
        workload.finish()
