"""What has to hold after every fault: the target is as it was, and nothing is left."""

import contextlib
import os
import signal
import subprocess

from faults.agent_watch import AgentWatch
from faults.bpf_objects import all_objects
from faults.memory_text import changed_bytes
from faults.registry import Failed, Verdict
from faults.targets import Target, with_variable
from support.commands.gilscope import Gilscope, eventually

__all__ = ["ends_well", "frees_its_objects", "is_unharmed", "leaves_no_process"]

_SLOWER = 2.0
"""By so much a unit may cost more than before: clocks are not what is compared here, and a
breakpoint that was left in a fight for the GIL is seen in the code itself."""
_CRASHES = {signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT, signal.SIGILL, signal.SIGFPE}


def ends_well(agent: Gilscope) -> None:
    """End *agent* if it has not ended by itself; raise Failed where it does not, or crashes."""
    if agent.process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            agent.send(signal.SIGCONT)
            agent.send(signal.SIGTERM)
        try:
            agent.outcome()
        except subprocess.TimeoutExpired as error:
            raise Failed(Verdict.HANGS, "the agent does not end within 60 s of SIGTERM") from error
    code = agent.process.returncode
    if -code in _CRASHES:
        raise Failed(Verdict.AGENT_DIED, f"by {signal.Signals(-code).name}")


def frees_its_objects(watch: AgentWatch) -> None:
    """Raise Failed if the kernel still has BPF objects of agents that have ended."""
    left: list[object] = []

    def is_free() -> bool:
        left[:] = sorted(watch.objects & all_objects())
        return not left

    try:
        eventually(is_free)
    except AssertionError as error:
        raise Failed(Verdict.LEAK, f"BPF objects left after 60 s: {left[:5]}") from error


def leaves_no_process(variable: str, mark: str) -> None:
    """Raise Failed if a process lives that bears the *mark* of agents; it is ended."""
    left: list[int] = []

    def is_empty() -> bool:
        left[:] = with_variable(variable, mark)
        return not left

    try:
        eventually(is_empty, within_s=20)
    except AssertionError as error:
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        raise Failed(Verdict.LEAK, f"processes left: {left}") from error


def is_unharmed(target: Target, before_ns: float) -> None:
    """Raise Failed unless *target* lives, computes at its speed, and has the code of its files.

    *before_ns* is what a unit of its work took before anybody traced it.
    """
    if not target.is_alive:
        raise Failed(Verdict.TARGET_HARMED, f"target {target.pid} is dead")
    try:
        target.advances(50)
    except AssertionError as error:
        raise Failed(Verdict.TARGET_HARMED, "the target stands still") from error
    changed: list[str] = []

    def is_as_in_file() -> bool:
        changed[:] = changed_bytes(target.pid)
        return not changed

    try:
        eventually(is_as_in_file)
    except AssertionError as error:
        words = f"{len(changed)} bytes of code changed after 60 s, {changed[0]}"
        raise Failed(Verdict.TARGET_HARMED, words) from error
    after_ns = target.cpu_ns_per_unit()
    if after_ns > _SLOWER * before_ns:
        # Whoever else works on this machine may have been in the way of the first measurement.
        after_ns = min(after_ns, *(target.cpu_ns_per_unit() for _ in range(4)))
    if after_ns > _SLOWER * before_ns:
        words = f"a unit takes {after_ns:.0f} ns of CPU time, {before_ns:.0f} before"
        raise Failed(Verdict.TARGET_HARMED, words)
