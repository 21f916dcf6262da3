"""PyPy's GIL, against a clock at the very mutexes that it is waited for by."""

import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from gilscope.elf.image import ElfImage
from gilscope.gil.probes.probe import GilProbe
from gilscope.gil.tracing.account import GilAccount
from gilscope.model.gil import GilObservation
from gilscope.model.kinds import Kind
from gilscope.model.stack import StackState
from gilscope.runtimes.pypy.sites.resolve import resolve_sites
from gilscope.runtimes.pypy.sites.work_facts import SECTIONS_AT_REST
from support.interpreters.known import PYPYS, TIMED_PYPYS, Interpreter, find_interpreter
from support.paths import WORKLOADS
from support.tracing.full_mode import tracing
from support.tracing.trace import looked_after, missed_events, observation_of

pytestmark = pytest.mark.live

_CALL = 5
"""Bytes of a call."""
_RUN_S = 5.0
_TOLERANCE = 0.01
_TRUTH_NS = 1_000_000_000
"""Less of it is too little to compare shares of."""

_SITES = {
    "pypy-bullseye": ("59736cf3", 0x28EC542, 0x28EC72A, 0x28EC8F5, 0x4385680, 0x4363AF8),
    "pypy3-bullseye": ("48f683ee", 0x2454B62, 0x2454D4A, 0x2454F15, 0x3D5A140, 0x3D38AD8),
    "pypy3-bookworm": ("2829c3e9", 0x22F9862, 0x22F99ED, 0x22F9BB5, 0x388CB00, 0x3865958),
    "pypy3-trixie": ("458d31c2", 0x24228E6, 0x2422AC0, 0x2422C39, 0x3A61F40, 0x3A39108),
    "pypy3-sid": ("f1dc7900", 0x235C864, 0x235CA24, 0x235CBA9, 0x391C7A0, 0x38FAB18),
}
"""By disassembly: where a wait begins, where it ends, where the GIL is given away, the word that is
the lock, and the one that counts who waits. Of other builds of these suites nothing is known."""


@pytest.fixture(scope="module")
def clock(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library that reads the truth."""
    built = tmp_path_factory.mktemp("clock") / "clock.so"
    source = WORKLOADS / "mutex_clock.c"
    command = ["gcc", "-O2", "-shared", "-fPIC", "-o", str(built), str(source), "-ldl"]
    subprocess.run(command, check=True)
    return built


def _clock_settings(interpreter: Interpreter) -> dict[str, str]:
    sites = resolve_sites(ElfImage(interpreter.elf.read_bytes()))
    first, last = sites.waits[0].call.vaddr, sites.waits[0].after.vaddr
    return {
        "CLOCK_FIRST": hex(first),
        "CLOCK_LAST": hex(last),
        "CLOCK_TAKEN": hex(last + _CALL),
        "CLOCK_GIVEN": hex(sites.forced_drops[0].vaddr + _CALL),
    }


@contextmanager
def _started(
    interpreter: Interpreter,
    *options: str,
    run_s: float = _RUN_S,
    settings: Mapping[str, str] | None = None,
) -> Iterator[subprocess.Popen[bytes]]:
    command = interpreter.command(*options, str(WORKLOADS / "pypy_turns.py"), str(run_s))
    environment = interpreter.environment(**(settings or {}))
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
    ) as program:
        try:
            assert program.stdout is not None
            assert int(program.stdout.readline()) == program.pid
            yield program
        finally:
            program.kill()


def _run(tracer: GilAccount, program: "subprocess.Popen[bytes]") -> GilObservation:
    """Trace *program* from before its threads begin until it has ended."""
    tracer.attach(program.pid)
    assert program.stdin is not None
    with looked_after(tracer):
        program.stdin.write(b"go\n")
        program.stdin.close()
        assert program.wait() == 0
    observation = observation_of(tracer, program.pid)
    assert "" == observation.invalid
    return observation


def _truth(file: Path) -> Mapping[int, tuple[int, int]]:
    """Return nanoseconds and number of the waits by thread."""
    lines = (map(int, line.split()) for line in file.read_text().splitlines())
    return {tid: (ns, waits) for tid, ns, waits in lines}


@pytest.mark.parametrize("interpreter", PYPYS)
def test_sites_are_those_of_a_disassembly(interpreter: Interpreter) -> None:
    """
    Each build's places are exactly those that were found by hand.
    """
    sites = resolve_sites(ElfImage(interpreter.elf.read_bytes()))
    build_id, *addresses = _SITES[interpreter.name]
    if not sites.build_id.startswith(build_id):
        pytest.skip("the suite has another build by now")

    assert addresses == [
        sites.waits[0].call.vaddr,
        sites.waits[0].after.vaddr,
        sites.forced_drops[0].vaddr,
        sites.facts["lock"],
        sites.facts["waiting"],
    ]


@pytest.mark.parametrize("interpreter", TIMED_PYPYS)
def test_waits_are_those_of_the_clock(
    tracer: GilAccount, interpreter: Interpreter, clock: Path, tmp_path: Path
) -> None:
    """
    Every wait of every thread counts, and takes as long as the mutexes show.

    Each has its cause, a role, and who held the GIL.
    """
    out = tmp_path / "truth"
    settings = {"LD_PRELOAD": str(clock), "CLOCK_OUT": str(out), **_clock_settings(interpreter)}
    with _started(interpreter, settings=settings) as program:
        observation = _run(tracer, program)
    totals, truth = observation.totals, _truth(out)
    measured = {thread.tid: thread for thread in totals.threads if thread.waits}

    assert {} == missed_events(observation)
    assert {tid: waits for tid, (_, waits) in truth.items()} == {
        tid: thread.waits for tid, thread in measured.items()
    }
    compared = {tid: ns for tid, (ns, _) in truth.items() if ns >= _TRUTH_NS}
    assert len(compared) >= 2
    for tid, ns in compared.items():
        assert measured[tid].wait_ns == pytest.approx(ns, rel=_TOLERANCE)
    by_role: dict[str, set[Kind]] = {}
    for thread in measured.values():
        kinds = {kind for kind, tally in thread.lost.items() if tally.count}
        by_role.setdefault(str(thread.role).partition(" ")[0], set()).update(kinds)
    assert Kind.PREEMPTION in by_role["crunch"]
    assert Kind.PREEMPTION not in by_role["knock"]
    blamed_ns = sum(
        edge.lost.ns
        for edge in totals.edges
        if edge.holder.frames and edge.holder.frames[0].function == "crunch"
    )
    assert blamed_ns >= 0.5 * totals.wait_ns
    assert sum(edge.lost.ns for edge in totals.edges) == totals.wait_ns
    (gil,) = totals.gils
    assert gil.drop_requests == 0
    assert gil.held_ns is not None


def test_interpreted_frames_have_lines(tracer: GilAccount) -> None:
    """
    Without the JIT every function has a frame, which tells the line that it stands in.
    """
    with _started(find_interpreter("pypy3-trixie"), "--jit", "off") as program:
        observation = _run(tracer, program)
    waiters = [
        edge.waiter
        for edge in observation.totals.edges
        if edge.waiter.state is StackState.WHOLE and edge.waiter.frames[0].function == "crunch"
    ]

    source = (WORKLOADS / "pypy_turns.py").read_text().splitlines()
    lines = {
        frame.line for stack in waiters for frame in stack.frames if frame.file.endswith("turns.py")
    }
    assert lines
    assert None not in lines
    text = {source[line - 1].strip() for line in lines if line is not None}
    assert text <= {
        "while time.time() < until_s:",
        "for number in range(20000):",
        "total += number * number % 7",
    }


@pytest.mark.beside_others
def test_full_mode_estimates_what_it_cannot_see(probe: GilProbe) -> None:
    """
    Nothing shows holds; for how long the GIL was held is sampled there as in contention mode.
    """
    with (
        tracing(probe) as tracer,
        _started(find_interpreter("pypy3-trixie"), run_s=1.0) as program,
    ):
        tracer.attach(program.pid)
        assert program.stdin is not None
        with looked_after(tracer):
            program.stdin.write(b"go\n")
            program.stdin.close()
            program.wait()
        totals = observation_of(tracer, program.pid).totals
    (gil,) = totals.gils

    assert totals.observed_ns is None
    assert {None} == {gil.holds, *(thread.held for thread in totals.threads)}
    assert gil.held_ns is not None
    assert 0 < gil.held_ns <= totals.at_ns


def test_a_lock_that_nobody_waits_for_is_never_seen(tracer: GilAccount) -> None:
    """
    A thread alone releases and takes the GIL without meeting a probe.
    """
    alone = (
        "import os,sys; print(os.getpid()); sys.stdout.flush(); sys.stdin.readline()\n"
        "read, write = os.pipe()\n"
        "for _ in range(100000): os.write(write, b'x'); os.read(read, 1)"
    )
    interpreter = find_interpreter("pypy3-trixie")
    with subprocess.Popen(
        interpreter.command("-c", alone),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=interpreter.environment(),
    ) as program:
        assert program.stdout is not None
        program.stdout.readline()
        observation = _run(tracer, program)

    assert 0 == sum(thread.waits for thread in observation.totals.threads)
    assert observation.totals.cost is not None
    assert 0 == observation.totals.cost.traps


@pytest.mark.parametrize("interpreter", PYPYS)
def test_every_build_tells_where_it_notes_its_own_work(interpreter: Interpreter) -> None:
    """
    Garbage collection and compilation; sections are noted in a word that is -1 in the file.
    """
    image = ElfImage(interpreter.elf.read_bytes())
    sites = resolve_sites(image)

    assert {"sections", "jit.current", "jit.mark", "frame.token"} <= sites.facts.keys()
    assert image.read(sites.facts["sections"], 8) == SECTIONS_AT_REST
    assert sites.checks[-1] == "it notes where it collects garbage and compiles, and tells where"
