"""Has doctor look at all kinds of process."""

import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from gilscope.doctor.probe_trial import Trial, try_probes
from support.commands.doctor import (
    NOBODY,
    STAY,
    SYSTEM_PYTHON,
    doctor,
    examined,
    found,
    missing,
    running,
    with_only,
)
from support.interpreters.known import (
    INTERPRETERS,
    Interpreter,
    Unavailable,
    find_interpreter,
)
from support.interpreters.stand_ins import cpython_3_5
from support.tracing.transactions import RPYTHON, built

pytestmark = [pytest.mark.live, pytest.mark.beside_others]


@pytest.fixture(scope="module")
def python() -> Iterator[int]:
    """A Python of the system, which has all capabilities of the test."""
    with running([SYSTEM_PYTHON, "-c", STAY]) as pid:
        yield pid


@pytest.fixture(scope="module")
def trial() -> Trial:
    """The probes, compiled, loaded and placed; every run of doctor does that anew."""
    return try_probes()


def test_a_process_on_the_command_line(python: int, trial: Trial) -> None:
    """
    The command reports what the examination has found, and exits with its code.
    """
    report = doctor("-p", str(python))

    assert (0, examined(python, trial)["process"]) == (report["exit_code"], report["process"])


@pytest.mark.parametrize("interpreter", INTERPRETERS)
def test_a_python_that_can_be_traced(interpreter: Interpreter, trial: Trial) -> None:
    """
    Version, file, sites, GIL and threads of every interpreter are found.
    """
    command = interpreter.command("-c", STAY)
    with running(command, interpreter.environment()) as pid:
        report = examined(pid, trial)

    process = report["process"]
    assert (0, []) == (report["exit_code"], missing(process))
    assert "{}.{}.{}".format(*interpreter.version) == process["python"]
    assert os.path.realpath(interpreter.elf) == os.path.realpath(process["path"])
    # CPython 3.6 has no GIL before the first thread is started.
    gils = [] if interpreter.minor < (3, 7) else [0]
    assert ("sites", gils, 1) == (process["method"], process["gils"], process["threads"])
    assert min(process["sites"].values()) >= 1
    assert found(process, "holds").startswith("seen in full and auto mode")
    locks = [check["found"] for check in process["checks"] if check["name"] == "locks"]
    seen = [each.startswith("seen with --locks: ") for each in locks]
    assert seen == [True] * (interpreter.minor >= (3, 13))


def test_a_python_that_cannot_be_traced(tmp_path: Path, trial: Trial) -> None:
    """
    It is named, with the code for a version that is not known.
    """
    command = [str(cpython_3_5(tmp_path))]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert b"1\n" == process.stdout.readline()
        report = examined(process.pid, trial)

    assert (8, ["interpreter"]) == (report["exit_code"], missing(report["process"]))


def test_a_process_that_is_no_python(trial: Trial) -> None:
    """
    The program is named.
    """
    with running(["/bin/sh", "-c", "echo ready; read _"]) as pid:
        report = examined(pid, trial)

    assert 3 == report["exit_code"]
    assert f"process {pid} (/bin/sh) does not map a Python interpreter" == (
        found(report["process"], "interpreter")
    )


def test_a_pid_that_nobody_has() -> None:
    """
    It is said so, and the machine's own checks are there all the same.
    """
    nobody = (1 << 30) - 1

    report = doctor("-p", str(nobody))

    assert (3, []) == (report["exit_code"], missing(report))
    assert f"there is no process {nobody}" == found(report["process"], "process")


def test_a_process_that_has_ended(trial: Trial) -> None:
    """
    One whose parent has not noticed is told apart from one that never was.
    """
    with subprocess.Popen(["true"]) as process:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        report = examined(process.pid, trial)

    assert 3 == report["exit_code"]
    assert f"process {process.pid} has ended; its parent has not noticed yet" == (
        found(report["process"], "process")
    )


def test_the_id_of_a_thread(trial: Trial) -> None:
    """
    The process that the thread belongs to is named.
    """
    stay = threading.Event()
    thread = threading.Thread(target=stay.wait)
    thread.start()
    assert thread.native_id is not None
    try:
        report = examined(thread.native_id, trial)
    finally:
        stay.set()
        thread.join()

    assert 3 == report["exit_code"]
    assert f"{thread.native_id} is a thread of process {os.getpid()}" == (
        found(report["process"], "process")
    )


def test_a_file_that_was_removed(tmp_path: Path, trial: Trial) -> None:
    """
    An interpreter that was upgraded under a running process is opened by another way.
    """
    copy = tmp_path / "python3.11"
    shutil.copy(SYSTEM_PYTHON, copy)
    with running([str(copy), "-c", STAY]) as pid:
        copy.unlink()
        report = examined(pid, trial)

    assert (0, f"/proc/{pid}/exe") == (report["exit_code"], report["process"]["opened_as"])
    assert "the file was replaced or removed" in found(report["process"], "interpreter")


def test_a_file_in_a_closed_folder(tmp_path: Path) -> None:
    """
    An agent that may not pass through a folder is told so, and not of a file that was replaced.
    """
    try:
        interpreter = find_interpreter("pyenv-3.11")
    except Unavailable as reason:
        pytest.skip(str(reason))
    closed = tmp_path / "closed"
    closed.mkdir()
    library = Path(shutil.copy(interpreter.elf, closed))
    home = str(interpreter.elf.parents[1])
    environment = interpreter.environment(LD_LIBRARY_PATH=str(closed), PYTHONHOME=home)
    with running(interpreter.command("-c", STAY), environment) as pid:
        # Root without CAP_DAC_OVERRIDE is a user like any other.
        os.chown(closed, NOBODY, NOBODY)
        closed.chmod(0o700)
        report = doctor("-p", str(pid), wrapper=with_only("bpf", "perfmon", "sys_ptrace"))
        closed.chmod(0o755)

    assert (5, [], ["interpreter"]) == (
        report["exit_code"],
        missing(report),
        missing(report["process"]),
    )
    assert f"{library} may not be opened by uid 0: " in found(report["process"], "interpreter")


def test_all_pythons_of_the_host(python: int) -> None:
    """
    The list holds those that can be traced and those that cannot, and nothing else.
    """
    with running(["/bin/sh", "-c", "echo ready; read _"]) as shell:
        report = doctor("--all")

    lines = {line["pid"]: line for line in report["processes"]}
    assert {
        "pid": python,
        "name": "python -c",
        "python": lines[os.getpid()]["python"],
        "method": "sites",
        "reason": "",
        "remedy": "",
    } == lines[python]
    assert shell not in lines


def test_nothing_is_attached(python: int) -> None:
    """
    The code of the process is the same before and after, and nobody traces it.
    """
    code = _code_of(python)

    doctor("-p", str(python))

    assert code == _code_of(python)


def _code_of(pid: int) -> bytes:
    for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
        span, mode, *_ = line.split()
        if "x" in mode and line.endswith(SYSTEM_PYTHON):
            begin, end = (int(address, 16) for address in span.split("-"))
            with Path(f"/proc/{pid}/mem").open("rb") as memory:
                memory.seek(begin)
                return memory.read(end - begin)
    message = "no code of the interpreter is mapped"
    raise AssertionError(message)


def test_process_with_transactions(tmp_path: Path, trial: Trial) -> None:
    """
    What has no GIL and runs transactions can be traced, and it is said how, and what would help.
    """
    program = built(tmp_path, "rpython", RPYTHON["pie-stripped"])
    with running([str(program), "1", "1", "log"]) as pid:
        report = examined(pid, trial)
    with running([str(program), "1", "1"]) as pid:
        mute = examined(pid, trial)

    assert 0 == report["exit_code"]
    assert found(mute["process"], "interpreter").endswith("PYPYSTM=/dev/null shows more")
    assert "PYPYSTM" not in found(report["process"], "interpreter")
    assert "_stm_profiling_event: where the exported pointer stmcb_timing_event leads" in (
        found(report["process"], "interpreter")
    )
