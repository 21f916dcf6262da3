"""What gilscope cannot trace or may not do, and how it says so."""

import shutil
import struct
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from accuracy.truth import exact_counts, started
from gilscope.doctor.machine import read_machine
from gilscope.doctor.remedies import grant
from gilscope.elf.image import ElfImage
from support.commands.gilscope import Outcome, gilscope, gilscope_started
from support.interpreters.builds import build
from support.interpreters.stand_ins import cpython_3_5, cpython_3_16, named

pytestmark = [pytest.mark.live, pytest.mark.beside_others]

_PYTHON = "/usr/bin/python3"
_IDLE = "import sys; sys.stdout.write('1\\n'); sys.stdout.flush(); sys.stdin.readline()"
_NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")


def _root_with(*capabilities: str) -> tuple[str, ...]:
    names = "".join(f",+{name}" for name in capabilities)
    return ("setpriv", f"--bounding-set=-all{names}", "--inh-caps=-all")


@contextmanager
def _idle(command: Sequence[str]) -> Iterator[int]:
    """Start an interpreter that waits for a line; yield its pid."""
    with _waiting([*command, "-c", _IDLE]) as pid:
        yield pid


@contextmanager
def _waiting(command: Sequence[str]) -> Iterator[int]:
    """Start a program that says a line when it is there and waits for one; yield its pid."""
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process.pid
        process.kill()


def _java(name: str, folder: Path) -> Path:
    return named(folder, name, "libjvm.so")


def _granting(capabilities: Sequence[str]) -> str:
    return grant(capabilities, read_machine())


def _assert_refused(outcome: Outcome, exit_code: int, *words: str) -> None:
    """Exit code, one line of what and why, and at least one line of what to do."""
    error, *remedy = outcome.messages.splitlines()

    assert (exit_code, "") == (outcome.exit_code, outcome.output)
    assert error.startswith("error: ")
    assert "Traceback" not in outcome.messages
    assert remedy
    for text in words:
        assert text in outcome.messages


_JAVA = "org.python.util.jython"


@pytest.mark.parametrize(
    ("program", "arguments", "words"),
    [
        (cpython_3_5, (), ("CPython 3.5.10; the oldest", "PyOS_FSPath", "CPython 3.6 to 3.15")),
        (cpython_3_16, (), ("CPython 3.16.0, newer", "Py_Version", "a later gilscope")),
        (partial(named, name="micropython"), (), ("MicroPython", "runs micropython", "3.6 to")),
        (partial(_java, "jython"), (_JAVA, "app.py"), ("Jython", _JAVA, "A Java profiler")),
        (partial(_java, "graalpy"), (), ("GraalPy", "maps graalpy", "A Java profiler")),
    ],
    ids=["3.5", "3.16", "micropython", "jython", "graalpy"],
)
def test_each_is_refused_with_words_of_its_own(
    tmp_path: Path,
    program: Callable[[Path], Path],
    arguments: Sequence[str],
    words: Sequence[str],
) -> None:
    """
    What it is, by which sign, and what to do; exit code 8.
    """
    with _waiting([str(program(tmp_path)), *arguments]) as pid:
        outcome = gilscope("record", "-p", str(pid))

    _assert_refused(outcome, 8, f"process {pid}: this is {words[0]}", *words[1:])


def test_other_python_as_a_command_runs_to_its_end_first(tmp_path: Path) -> None:
    """
    A command that turns out to be an old Python does its work; then the refusal comes.
    """
    outcome = gilscope("record", "--", str(cpython_3_5(tmp_path)), typed="done\n")

    assert (8, "1\n") == (outcome.exit_code, outcome.output)
    assert "this is CPython 3.5.10" in outcome.messages


def test_a_lock_that_two_functions_do_not_name_alike_is_refused(tmp_path: Path) -> None:
    """
    A stripped CPython 2.7 that acquires one lock and releases another gives exit code 4, and both.
    """
    original = build("pyenv-2.7-stripped")
    library = Path(shutil.copy(original.elf, tmp_path))
    content = bytearray(library.read_bytes())
    image = ElfImage(bytes(content))
    release = image.default_version_symbol("PyEval_ReleaseLock")
    assert release is not None
    # mov interpreter_lock(%rip), %rdi: the distance is behind three bytes.
    at = image.file_offset(release) + 3
    (distance,) = struct.unpack_from("<i", content, at)
    struct.pack_into("<i", content, at, distance + 8)
    library.write_bytes(content)
    settings = [f"{name}={value}" for name, value in original.env.items()]
    with _idle(["env", *settings, f"LD_LIBRARY_PATH={tmp_path}", *original.argv]) as pid:
        outcome = gilscope("record", "-p", str(pid))

    words = ("this is CPython 2.7, but PyEval_AcquireLock acquires", "PyEval_ReleaseLock releases")
    _assert_refused(outcome, 4, *words)


@pytest.mark.parametrize(
    "arguments",
    [
        ["record", "-p", "{pid}"],
        ["record", "--", "true"],
        ["serve", "--match", "x", "--listen", "127.0.0.1:0"],
    ],
    ids=["record-pid", "record-command", "serve"],
)
@pytest.mark.parametrize(
    "wrapper", [_NOBODY, _root_with(), _root_with("sys_ptrace")], ids=["nobody", "none", "ptrace"]
)
def test_without_permission(wrapper: Sequence[str], arguments: Sequence[str]) -> None:
    """
    Without CAP_BPF and CAP_PERFMON nothing works: exit code 5, and the capabilities to grant.
    """
    with _idle([_PYTHON]) as pid:
        line = [word.format(pid=pid) for word in arguments]
        outcome = gilscope(*line, wrapper=wrapper)

    _assert_refused(outcome, 5, " missing", "CAP_")


@pytest.mark.parametrize(
    ("capabilities", "missing"),
    [
        (("bpf", "perfmon"), ("CAP_DAC_READ_SEARCH", "CAP_SYS_PTRACE")),
        (("bpf", "perfmon", "sys_ptrace"), ("CAP_DAC_READ_SEARCH",)),
    ],
)
def test_process_of_somebody_else(capabilities: Sequence[str], missing: Sequence[str]) -> None:
    """
    What it takes to look into another user's process is said, and how it is given: exit code 5.
    """
    with _idle([*_NOBODY, _PYTHON]) as pid:
        outcome = gilscope("record", "-p", str(pid), wrapper=_root_with(*capabilities))

    _assert_refused(outcome, 5, f"process {pid}", f"{' and '.join(missing)} ", _granting(missing))


def test_three_capabilities_are_enough() -> None:
    """
    With CAP_BPF, CAP_PERFMON and CAP_SYS_PTRACE alone a recording is complete.
    """
    wrapper = _root_with("bpf", "perfmon", "sys_ptrace")
    with (
        started([_PYTHON], "exact_count.py") as workload,
        gilscope_started("record", "--full", "-p", str(workload.pid), wrapper=wrapper) as command,
    ):
        command.says("Tracing the GIL of")
        truth = exact_counts(workload.run())
        workload.finish()
        outcome = command.outcome()

    assert 0 == outcome.exit_code
    assert f"({truth.waiter.convoy_waits}x GIL_CONVOY)" in outcome.output


def test_four_capabilities_are_enough_for_processes_of_others() -> None:
    """
    With CAP_DAC_READ_SEARCH besides these three another user's process is traced.
    """
    wrapper = _root_with("bpf", "perfmon", "sys_ptrace", "dac_read_search")
    with _idle([*_NOBODY, _PYTHON]) as pid:
        outcome = gilscope("record", "-p", str(pid), "-d", "0.1", wrapper=wrapper)

    assert 0 == outcome.exit_code
    assert "None: no thread had to wait for the GIL." in outcome.output


_EVIL_TITLES = (
    b"\x1b]0;owned\x07\x1b[31mRED\r",
    b"\xe2\x80\xaednim\xe2\x81\xa6",
    b"\x9b31m\xff\x00",
    b"line\nerror: forged",
)


@pytest.mark.parametrize("title", _EVIL_TITLES)
@pytest.mark.parametrize("command", [("record", "-p"), ("serve", "-p"), ("doctor", "-p")])
def test_refusal_holds_nothing_that_a_terminal_obeys(
    command: tuple[str, str], title: bytes
) -> None:
    """
    Whatever the process that is refused calls itself; nor does it add a line.
    """
    words = [part for part in title.split(b"\0") if part]
    with subprocess.Popen([words[0], b"600"], executable="/bin/sleep") as process:
        outcome = gilscope(*command, str(process.pid))
        process.kill()

    told = f"{outcome.output}{outcome.messages}"
    assert (3, True) == (outcome.exit_code, str(process.pid) in told)
    assert [] == [line for line in told.split("\n") if not line.isprintable()]
    assert "\nerror: forged" not in told
