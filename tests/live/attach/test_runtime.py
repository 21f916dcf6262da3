"""Reads stacks, names, locks and thread ids of every real interpreter, against its own words."""

import errno
import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import IO, Any

import pytest

from gilscope.elf.image import ElfImage
from gilscope.model.stack import UNKNOWN_FRAME, Frame
from gilscope.naming.roles import FRAMES_FOR_ROLE, thread_role
from gilscope.process.memory import ProcessMemory
from gilscope.process.remote_read import TornRead
from gilscope.runtimes.cpython.code.code_objects import CodeReader
from gilscope.runtimes.cpython.code.frames import outermost_frames
from gilscope.runtimes.cpython.detect import identify
from gilscope.runtimes.cpython.runtime import (
    PythonThread,
    Runtime,
    kernel_thread_id,
    read_gils,
    read_threads,
)
from support.interpreters.known import INTERPRETERS, Interpreter
from support.paths import WORKLOADS
from support.tracing.runtime import live_runtime
from support.tracing.stacks import read_places

pytestmark = [pytest.mark.live, pytest.mark.beside_others]

_WORKLOAD = WORKLOADS / "parked_threads.py"
_LEVELS = 2000
_HAS_QUALNAMES = (3, 11)
_HAS_OWN_GILS = (3, 12)


@dataclass(frozen=True, slots=True)
class _Target:
    """The workload, parked."""

    interpreter: Interpreter
    runtime: Runtime
    pid: int
    commands: IO[str]
    answers: IO[str]

    def truth(self) -> dict[int, Any]:
        """Return what the target says of its threads, by pthread_self()."""
        self.commands.write("truth\n")
        self.commands.flush()
        answer = json.loads(self.answers.readline())["truth"]
        return {int(thread_id): thread for thread_id, thread in answer.items()}

    def name(self, qualified: str) -> str:
        """Return the name that this version stores for a function."""
        if self.interpreter.minor >= _HAS_QUALNAMES:
            return qualified
        return qualified.rpartition(".")[2]

    def role(self, qualified: str) -> str:
        """Return the role of a thread that runs that function of the workload for its life."""
        plain = qualified.rpartition(".")[2]
        start = "(lambda: park(), ())" if plain == "<lambda>" else f"def {plain}("
        source = _WORKLOAD.read_text(encoding="utf-8").splitlines()
        (line,) = (number for number, text in enumerate(source, 1) if start in text)
        return f"{self.name(qualified)} (parked_threads.py:{line})"

    def frames(self, thread: PythonThread, limit: int = 64) -> tuple[Frame, ...]:
        """Return the innermost frames of a thread, innermost first."""
        places = read_places(self.runtime, thread.tstate, limit=limit)
        return CodeReader(self.runtime).frames(places)

    def threads_of(self, interpreter_id: int) -> list[PythonThread]:
        """Return the threads that have a Python stack in one interpreter."""
        return [
            thread
            for thread in read_threads(self.runtime)
            if thread.interpreter_id == interpreter_id
            and outermost_frames(self.runtime, thread.tstate, 1)
        ]


@contextmanager
def _parked(interpreter: Interpreter) -> Iterator[_Target]:
    with subprocess.Popen(
        interpreter.command(str(_WORKLOAD)),
        env=interpreter.environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        # The id that the process states is its own: a launcher may stand in between.
        pid = json.loads(process.stdout.readline())["pid"]
        try:
            with live_runtime(interpreter, pid) as runtime:
                yield _Target(interpreter, runtime, pid, process.stdin, process.stdout)
        finally:
            process.kill()


@pytest.fixture(scope="module", params=INTERPRETERS)
def target(request: pytest.FixtureRequest) -> Iterator[_Target]:
    """Start the workload on each interpreter once, for all tests of this file."""
    with _parked(request.param) as parked:
        yield parked


@pytest.mark.parametrize("interpreter", INTERPRETERS)
def test_version_is_read_from_the_file(interpreter: Interpreter) -> None:
    """The version found in the file is the one that the running interpreter prints."""
    found = identify(ElfImage(interpreter.elf.read_bytes()))
    assert interpreter.minor == found.minor
    assert "{}.{}.{}".format(*interpreter.version) == found.version


def test_stacks_are_what_the_interpreter_says(target: _Target) -> None:
    """Every frame of every parked thread has the name, file and lines that Python itself gives."""
    read = {thread.thread_id: target.frames(thread, _LEVELS * 2) for thread in target.threads_of(0)}
    truth = target.truth()
    expected = {
        thread_id: tuple(Frame(*frame) for frame in thread["stack"])
        for thread_id, thread in truth.items()
        if thread["tid"] != target.pid
    }
    main_thread = next(key for key, thread in truth.items() if thread["tid"] == target.pid)
    # The main thread moves on to answer; where it came from stays.
    assert ["main", "<module>"] == [frame.function for frame in read.pop(main_thread)][-2:]
    assert expected == read


def test_stacks_are_the_same_after_python_has_looked_at_them(target: _Target) -> None:
    """Frame objects that a debugger or profiler has created change nothing."""
    threads = [
        thread
        for thread in target.threads_of(0)
        if kernel_thread_id(target.runtime, thread) != target.pid
    ]
    before = [target.frames(thread) for thread in threads]
    target.truth()
    assert before == [target.frames(thread) for thread in threads]


def test_every_thread_has_its_role(target: _Target) -> None:
    """A role is the function above threading's own, whatever stands on top of it."""
    roles = sorted(
        str(
            thread_role(
                outermost_frames(target.runtime, thread.tstate, FRAMES_FOR_ROLE),
                is_main_thread=kernel_thread_id(target.runtime, thread) == target.pid,
            )
        )
        for thread in target.threads_of(0)
    )
    pool_lines = {
        frame[2]
        for thread in target.truth().values()
        for frame in thread["stack"]
        if frame[0] == "_worker"
    }
    functions = (
        "worker",
        "main.<locals>.<lambda>",
        "through_c",
        "in_generator",
        "descend",
        "größe",
        "待機",
        "𠮷野家",
        "Methods.serve",
        "in_class_body",
        "in_comprehension",
        "in_coroutine",
        "in_handler",
        "in_text",
        "in_archive",
        "inhabit",
        "Overriding.run",
    )
    expected = ["MainThread", f"_worker (concurrent/futures/thread.py:{pool_lines.pop()})"]
    expected += [target.role(function) for function in functions]
    assert sorted(expected) == roles


def test_outermost_frames_of_a_deep_recursion(target: _Target) -> None:
    """Two thousand calls deep, the function that the thread was started with is still found."""
    (outer,) = (
        frames
        for thread in target.threads_of(0)
        for frames in [outermost_frames(target.runtime, thread.tstate, 5)]
        if frames[-1].function == "descend"
    )
    names = ["Thread._bootstrap", "Thread._bootstrap_inner", "Thread.run", "descend", "descend"]
    assert [target.name(name) for name in names] == [frame.function for frame in outer]


def test_innermost_frames_are_bounded(target: _Target) -> None:
    """No more frames than asked for are read, beginning at the innermost."""
    frames = [
        [frame.function for frame in target.frames(thread, limit=2)]
        for thread in target.threads_of(0)
    ]
    assert ["park", "descend"] in frames
    assert {2} == {len(names) for names in frames}


def test_kernel_thread_ids(target: _Target) -> None:
    """The kernel's id of each thread is the one that Python reports, also before 3.11."""
    truth = {thread_id: thread["tid"] for thread_id, thread in target.truth().items()}
    assert truth == {
        thread.thread_id: kernel_thread_id(target.runtime, thread)
        for thread in target.threads_of(0)
    }


def test_thread_ids_from_libc_agree_with_those_from_python(target: _Target) -> None:
    """The offset in glibc's descriptor holds for the C library of every interpreter."""
    layout = replace(target.runtime.layout, native_thread_id=None)
    runtime = replace(target.runtime, layout=layout)
    truth = {thread_id: thread["tid"] for thread_id, thread in target.truth().items()}
    assert truth == {
        thread.thread_id: kernel_thread_id(runtime, replace(thread, native_thread_id=None))
        for thread in target.threads_of(0)
    }


def test_code_in_another_interpreter(target: _Target) -> None:
    """A thread that runs code of a second interpreter has a stack of its own there."""
    stacks = [
        [(frame.function, frame.first_line, frame.line) for frame in target.frames(thread)]
        for thread in target.threads_of(1)
    ]
    assert [("inside", 2, 4)] == [stack[0] for stack in stacks]
    assert ["<module>"] == [stack[-1][0] for stack in stacks]


def test_every_gil_is_found_once(target: _Target) -> None:
    """One GIL before 3.12; from then on one for each interpreter that does not share."""
    gils = read_gils(target.runtime)
    owners = [0, 1] if target.interpreter.minor >= _HAS_OWN_GILS else [0]
    assert owners == [gil.interpreter_id for gil in gils]
    assert len(owners) == len({gil.cond for gil in gils})


def test_what_is_no_thread_has_no_names(target: _Target) -> None:
    """Addresses that do not hold a thread state yield no frame, be they mapped or not."""
    (gil, *_) = read_gils(target.runtime)
    reader = CodeReader(target.runtime)
    found: set[Frame] = set()
    for address in (8, target.runtime.address + 4096, gil.cond, target.runtime.code_type):
        with suppress(TornRead):
            found.update(reader.frames(read_places(target.runtime, address)))
    assert found <= {UNKNOWN_FRAME}


def test_a_process_that_has_gone_is_told_apart() -> None:
    """Reading after the exit fails with ESRCH instead of a torn read."""
    with subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE) as process:
        memory = ProcessMemory(process.pid)
        assert process.stdin is not None
        process.stdin.close()
        process.wait()
    with memory, pytest.raises(OSError, match=r"No such process") as caught:
        memory.read(4096, 8)
    assert errno.ESRCH == caught.value.errno
