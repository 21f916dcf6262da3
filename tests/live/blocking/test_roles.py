"""Names the threads of live processes, against what the threads say of themselves."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from accuracy.truth import spoken_to
from gilscope.model.stack import Stack, StackState
from gilscope.naming.places import role_of
from gilscope.runtimes.cpython.code.code_objects import CodeReader
from gilscope.runtimes.cpython.runtime import Runtime
from gilscope.runtimes.cpython.thread_roles import RoleReader
from gilscope.runtimes.cpython.threads import ThreadFinder
from support.commands.gilscope import eventually
from support.interpreters.known import ONE_PER_MINOR, Interpreter
from support.paths import WORKLOADS
from support.tracing.runtime import live_runtime
from support.tracing.stacks import read_places
from support.tracing.trace import command_of

pytestmark = [pytest.mark.live, pytest.mark.beside_others]

every_minor = pytest.mark.parametrize("interpreter", ONE_PER_MINOR)

_WORKLOAD = "roles_of_threads.py"


@dataclass(frozen=True, slots=True)
class _Target:
    """A parked workload, and its readers."""

    pid: int
    facts: Mapping[str, Any]
    runtime: Runtime
    threads: ThreadFinder

    def role_in_stack(self, tid: int) -> str:
        """Return the role that the present stack of a thread tells."""
        places = read_places(self.runtime, self.threads.by_tid()[tid].tstate)
        frames = CodeReader(self.runtime).frames(places)
        return role_of(Stack(frames, StackState.WHOLE if frames else StackState.NO_PYTHON))

    def roles(self, kind: str) -> dict[int, str]:
        """Return what the workload says of its threads."""
        return {int(tid): role for tid, role in self.facts[kind].items()}


@contextmanager
def _parked(interpreter: Interpreter, *arguments: str) -> Iterator[_Target]:
    # So that modules are found that are not run by their file.
    command = ["env", f"PYTHONPATH={WORKLOADS}", *command_of(interpreter)]
    with (
        spoken_to([*command, *(arguments or [str(WORKLOADS / _WORKLOAD)])]) as workload,
        live_runtime(interpreter, workload.pid) as runtime,
    ):
        threads = ThreadFinder(workload.pid, runtime)
        yield _Target(workload.pid, workload.ready, runtime, threads)


@every_minor
def test_every_thread_is_known_by_the_function_of_its_life(interpreter: Interpreter) -> None:
    """
    However a thread is made, by Python, a pool, a server or C, its role is the one that it states.
    """
    with _parked(interpreter) as target:
        reader = RoleReader(target.pid, target.runtime, target.threads)
        for tid in target.roles("roles"):
            reader.want(tid)
        reader.read_wanted()
        # Threads of pools might yet show another job.
        reader.settle()

        assert target.roles("roles") == reader.known


@every_minor
def test_stack_tells_the_same_role(interpreter: Interpreter) -> None:
    """
    The role that reports take from a noted stack is the one that the thread's totals stand under.
    """
    with _parked(interpreter) as target:
        in_stacks = {tid: target.role_in_stack(tid) for tid in target.roles("roles")}

        assert target.roles("roles") == in_stacks
        assert "MainThread" == target.role_in_stack(target.pid)


@every_minor
def test_thread_that_stays_in_threading(interpreter: Interpreter) -> None:
    """
    A timer that runs for long, and a thread whose function is C, are known by their `run`, later.
    """
    with _parked(interpreter) as target:
        reader = RoleReader(target.pid, target.runtime, target.threads)
        resting = target.roles("resting")
        for tid in resting:
            reader.want(tid)
        began_s = time.monotonic()
        reader.read_wanted()
        at_first = dict(reader.known)

        def all_are_known() -> bool:
            reader.read_wanted()
            return len(reader.known) == len(resting)

        assert {} == at_first
        assert eventually(all_are_known)
        assert resting == reader.known
        assert time.monotonic() - began_s >= 2
        assert resting == {tid: target.role_in_stack(tid) for tid in resting}


@every_minor
@pytest.mark.parametrize(
    "arguments",
    [
        (str(WORKLOADS / "roles_main.py"),),
        ("-m", "roles_main"),
        ("-c", "import roles_main; roles_main.main()"),
        (str(WORKLOADS / "roles_main.py"), "ending"),
    ],
    ids=["script", "module", "text", "ending"],
)
def test_main_thread_is_told_by_its_stack(
    interpreter: Interpreter, arguments: tuple[str, ...]
) -> None:
    """
    However the program was started, and while it ends, its main thread is called that.
    """
    with _parked(interpreter, *arguments) as target:
        assert "MainThread" == target.role_in_stack(target.pid)
