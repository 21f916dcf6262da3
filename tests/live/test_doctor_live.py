"""Runs doctor where something is missing, and expects the true cause; and on all kinds of process.

Many of these causes look the same to a program that just tries: "Operation not permitted" or
"Failed to compile".
"""

import json
import os
import shutil
import subprocess
import sys
import threading
import venv
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from gilscope.kernel.headers import find_headers, find_system_headers
from interpreters import (
    ALL_INTERPRETERS,
    REFUSED_INTERPRETERS,
    Interpreter,
    Unavailable,
    find_interpreter,
)
from live.gilscope_command import Outcome, gilscope

pytestmark = pytest.mark.live

_STAY = "import sys; sys.stdout.write('ready\\n'); sys.stdout.flush(); sys.stdin.read()"
_SYSTEM_PYTHON = "/usr/bin/python3.11"

# Denies bpf to whatever it executes: BPF_LD of the number, then the answer for 321 and for others.
_DENYING_BPF = """\
import ctypes, os, struct, sys
answer = int(sys.argv[1], 0)
program = b"".join(
    struct.pack("=HBBI", *instruction)
    for instruction in (
        (0x20, 0, 0, 0), (0x15, 0, 1, 321), (6, 0, 0, answer), (6, 0, 0, 0x7FFF0000)
    )
)
code = ctypes.create_string_buffer(program, len(program))
filter = ctypes.create_string_buffer(struct.pack("=HxxxxxxQ", 4, ctypes.addressof(code)), 16)
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0, "PR_SET_NO_NEW_PRIVS"
assert libc.prctl(22, 2, filter, 0, 0) == 0, "PR_SET_SECCOMP"
os.execv(sys.argv[2], sys.argv[2:])
"""
_ANSWER_EPERM, _ANSWER_ENOSYS, _KILL = "0x50001", "0x50026", "0x80000000"


@contextmanager
def _running(command: Sequence[str], environment: dict[str, str] | None = None) -> Iterator[int]:
    """Start a process that says a line when it is ready and stays until its input ends."""
    with subprocess.Popen(
        list(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
    ) as process:
        assert process.stdout is not None
        assert b"ready\n" == process.stdout.readline()
        yield process.pid


@pytest.fixture(scope="module")
def python() -> Iterator[int]:
    """A Python of the system, which has all capabilities of the test."""
    with _running([_SYSTEM_PYTHON, "-c", _STAY]) as pid:
        yield pid


def _report(outcome: Outcome) -> dict[str, Any]:
    assert "" == outcome.messages
    report: dict[str, Any] = json.loads(outcome.output)
    assert outcome.exit_code == report["exit_code"]
    return report


def _doctor(*arguments: str, wrapper: Sequence[str] = (), **extra: str) -> dict[str, Any]:
    command = ("doctor", "--format", "json", *arguments)
    return _report(gilscope(*command, wrapper=wrapper, extra=extra))


def _missing(subject: dict[str, Any]) -> list[str]:
    return [check["name"] for check in subject["checks"] if check["status"] == "missing"]


def _found(subject: dict[str, Any], name: str) -> str:
    (found,) = [check["found"] for check in subject["checks"] if check["name"] == name]
    return str(found)


def _with_only(*capabilities: str) -> list[str]:
    wanted = "".join(f",+{name}" for name in capabilities)
    return ["setpriv", f"--bounding-set=-all{wanted}"]


def test_everything_works_here() -> None:
    """
    Where live tests run, the machine is well, and the probes were compiled and loaded.
    """
    report = _doctor()

    assert (True, 0, []) == (report["ok"], report["exit_code"], _missing(report))
    assert _found(report, "probes").startswith("compiled and loaded in ")


def test_the_text_report_is_narrow(python: int) -> None:
    """
    As text it ends with the verdicts, uncoloured in a pipe and below 100 columns.
    """
    outcome = gilscope("doctor", "-p", str(python))

    lines = outcome.output.splitlines()
    assert (0, "") == (outcome.exit_code, outcome.messages)
    assert [
        "gilscope works here.",
        f"Process {python} can be traced: gilscope record -p {python}",
    ] == lines[-2:]
    assert [] == [line for line in lines if len(line) >= 100 or "\033" in line]


_ENOUGH = [("bpf", "perfmon", "sys_ptrace"), ("sys_admin", "sys_ptrace")]


@pytest.mark.parametrize("capabilities", _ENOUGH, ids="+".join)
def test_enough_capabilities(python: int, capabilities: tuple[str, ...]) -> None:
    """
    Either set serves for a process that has more of them.
    """
    report = _doctor("-p", str(python), wrapper=_with_only(*capabilities))

    assert (0, [], []) == (report["exit_code"], _missing(report), _missing(report["process"]))


_AS_NOBODY = ["setpriv", "--reuid=65534", "--clear-groups"]
_WITH_CAPABILITIES = [
    "--inh-caps=-all,+bpf,+perfmon,+sys_ptrace",
    "--ambient-caps=-all,+bpf,+perfmon,+sys_ptrace",
]
_NOBODY = 65534
_TOO_FEW = [
    (("bpf", "perfmon"), "CAP_SYS_PTRACE", ["capabilities"], ["memory"]),
    (("sys_admin",), "CAP_SYS_PTRACE", ["capabilities"], ["memory"]),
    (
        ("bpf", "sys_ptrace"),
        "CAP_PERFMON",
        ["capabilities", "bpf", "raw_tracepoints", "uprobes"],
        [],
    ),
    (
        ("perfmon", "sys_ptrace"),
        "CAP_BPF",
        ["capabilities", "bpf", "raw_tracepoints", "uprobes"],
        [],
    ),
]


@pytest.mark.parametrize(
    ("capabilities", "name", "machine", "process"),
    _TOO_FEW,
    ids=["no ptrace", "admin alone", "no perfmon", "no bpf"],
)
def test_too_few_capabilities(
    python: int, capabilities: tuple[str, ...], name: str, machine: list[str], process: list[str]
) -> None:
    """
    The one that is missing is named, wherever its absence shows.
    """
    report = _doctor("-p", str(python), wrapper=_with_only(*capabilities))

    assert (5, machine, process) == (
        report["exit_code"],
        _missing(report),
        _missing(report["process"]),
    )
    assert _found(report, "capabilities").startswith(f"{name} is missing")
    assert [] == [
        check["name"]
        for check in [*report["checks"], *report["process"]["checks"]]
        if check["status"] == "missing" and f"{name} is missing" not in check["found"]
    ]


def test_no_capability(python: int) -> None:
    """
    All three are named, and one remedy grants them.
    """
    report = _doctor("-p", str(python), wrapper=_with_only())

    assert "CAP_BPF, CAP_PERFMON and CAP_SYS_PTRACE are missing" == _found(report, "capabilities")
    remedies = {
        check["remedy"]
        for check in report["checks"]
        if check["name"] in {"capabilities", "bpf", "uprobes"}
    }
    assert 1 == len(remedies)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (_ANSWER_EPERM, "a seccomp filter on the agent answers EPERM (Operation not permitted)"),
        (_ANSWER_ENOSYS, "a seccomp filter on the agent answers ENOSYS (Function not implemented)"),
        (_KILL, "a seccomp filter on the agent kills whoever calls bpf"),
    ],
    ids=["EPERM", "ENOSYS", "kill"],
)
def test_a_seccomp_filter(answer: str, words: str) -> None:
    """
    A filter that denies bpf is blamed for it, although all capabilities are there.
    """
    report = _doctor(wrapper=[_SYSTEM_PYTHON, "-c", _DENYING_BPF, answer])

    assert (5, ["seccomp", "bpf", "raw_tracepoints", "uprobes"]) == (
        report["exit_code"],
        _missing(report),
    )
    assert "a filter on the agent forbids bpf, whatever its capabilities" == (
        _found(report, "seccomp")
    )
    assert _found(report, "bpf").startswith(words)


def test_a_user_namespace(python: int) -> None:
    """
    The root of a rootless container has all capabilities, and none that counts.
    """
    wrapper = ["unshare", "--user", "--map-root-user"]
    if subprocess.run([*wrapper, "true"], check=False, capture_output=True).returncode:
        pytest.skip("this machine lets nobody make user namespaces")

    report = _doctor("-p", str(python), wrapper=wrapper)

    assert (5, "user_namespace", ["memory"]) == (
        report["exit_code"],
        _missing(report)[0],
        _missing(report["process"]),
    )
    assert "capabilities" not in _missing(report)
    assert "in a user namespace" in _found(report["process"], "memory")


def test_alone_in_a_pid_namespace(python: int) -> None:
    """
    An agent that sees nobody is told how to share; a pid of the host means nothing to it.
    """
    wrapper = ["unshare", "--pid", "--fork", "--mount-proc"]

    report = _doctor("-p", str(python), wrapper=wrapper)

    assert (3, [], ["process"]) == (
        report["exit_code"],
        _missing(report),
        _missing(report["process"]),
    )
    assert "one of its own, with no other process in it: there is nothing to trace" == (
        _found(report, "pid_namespace")
    )


def test_the_proc_of_another_namespace() -> None:
    """
    A /proc that shows other pids than the agent's is named.
    """
    report = _doctor(wrapper=["unshare", "--pid", "--fork"])

    assert (6, ["pid_namespace"]) == (report["exit_code"], _missing(report))


def test_no_proc() -> None:
    """
    Without /proc nothing can be learned, and that is all that is said.
    """
    wrapper = ["unshare", "--mount", "/bin/sh", "-c", 'umount -l /proc && exec "$0" "$@"']

    outcome = gilscope("doctor", wrapper=wrapper)

    assert (6, "") == (outcome.exit_code, outcome.output)
    assert [
        (
            "error: /proc/self cannot be read (No such file or directory), and everything is "
            "learned from there"
        ),
        "mount -t proc proc /proc",
    ] == outcome.messages.splitlines()


def test_headers_that_are_not_there(tmp_path: Path) -> None:
    """
    A folder without headers is named with the first file that it lacks.
    """
    report = _doctor(BCC_KERNEL_SOURCE=str(tmp_path))

    assert (6, ["kernel_headers"]) == (report["exit_code"], _missing(report))
    assert f"BCC_KERNEL_SOURCE names {tmp_path}, which has no include/linux/kconfig.h" == (
        _found(report, "kernel_headers")
    )


def test_no_headers_at_all(tmp_path: Path) -> None:
    """
    An installation without headers, on a machine without headers, says where it looked.
    """
    release = os.uname().release
    if find_headers({}, release, shipped=()) or find_system_headers(release):
        pytest.skip("this machine has kernel headers of its own")
    agent = Path(__file__).resolve().parents[2]
    shutil.copytree(agent / "agent", tmp_path / "agent")
    shutil.copytree(agent / "probes", tmp_path / "probes")

    report = _doctor(PYTHONPATH=str(tmp_path / "agent"), BCC_KERNEL_SOURCE="")

    assert (6, ["kernel_headers"]) == (report["exit_code"], _missing(report))
    assert "none in /lib/modules/" == _found(report, "kernel_headers")[:21]


def test_another_bcc_on_the_python_path(tmp_path: Path) -> None:
    """
    What lies on PYTHONPATH does not pose as BCC.
    """
    (tmp_path / "bcc.py").touch()
    agent = Path(__file__).resolve().parents[2] / "agent"

    report = _doctor(PYTHONPATH=os.pathsep.join((str(tmp_path), str(agent))))

    assert (0, []) == (report["exit_code"], _missing(report))


def test_another_bcc_in_the_environment(tmp_path: Path) -> None:
    """
    PyPI's package of that name in the agent's environment is passed over, and told of.
    """
    venv.create(tmp_path, system_site_packages=True, symlinks=True)
    (library,) = (tmp_path / "lib").glob("python*/site-packages")
    (library / "bcc.py").touch()
    python = str(tmp_path / "bin" / "python")
    path = os.pathsep.join([entry for entry in sys.path if entry])

    # The shell puts that environment's Python in the place of the tests' own.
    wrapper = ["/bin/sh", "-c", 'shift; exec "$0" "$@"', python]
    report = _doctor(wrapper=wrapper, PYTHONPATH=path)

    assert f"; the module bcc of {python} is not BCC, and is passed over" in _found(report, "bcc")
    assert (0, []) == (report["exit_code"], _missing(report))


@pytest.mark.parametrize("interpreter", ALL_INTERPRETERS)
def test_a_python_that_can_be_traced(interpreter: Interpreter) -> None:
    """
    Version, file, sites, GIL and threads of every interpreter are found.
    """
    command = interpreter.command("-c", _STAY)
    with _running(command, interpreter.environment()) as pid:
        report = _doctor("-p", str(pid))

    process = report["process"]
    assert (0, []) == (report["exit_code"], _missing(process))
    assert "{}.{}.{}".format(*interpreter.version) == process["python"]
    assert os.path.realpath(interpreter.elf) == os.path.realpath(process["path"])
    assert ("sites", [0], 1) == (process["method"], process["gils"], process["threads"])
    assert min(process["sites"].values()) >= 1


@pytest.mark.parametrize("interpreter", REFUSED_INTERPRETERS)
def test_a_python_that_cannot_be_traced(interpreter: Interpreter) -> None:
    """
    It is named, with the code for a version that is not known.
    """
    command = interpreter.command("-c", _STAY)
    with _running(command, interpreter.environment()) as pid:
        report = _doctor("-p", str(pid))

    assert (8, ["interpreter"]) == (report["exit_code"], _missing(report["process"]))


def test_a_process_that_is_no_python() -> None:
    """
    The program is named.
    """
    with _running(["/bin/sh", "-c", "echo ready; read _"]) as pid:
        report = _doctor("-p", str(pid))

    assert 3 == report["exit_code"]
    assert f"process {pid} (/bin/sh) does not map a Python interpreter" == (
        _found(report["process"], "interpreter")
    )


def test_a_pid_that_nobody_has() -> None:
    """
    It is said so, and the machine's own checks are there all the same.
    """
    nobody = (1 << 30) - 1

    report = _doctor("-p", str(nobody))

    assert (3, []) == (report["exit_code"], _missing(report))
    assert f"there is no process {nobody}" == _found(report["process"], "process")


def test_a_process_that_has_ended() -> None:
    """
    One whose parent has not noticed is told apart from one that never was.
    """
    with subprocess.Popen(["true"]) as process:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        report = _doctor("-p", str(process.pid))

    assert 3 == report["exit_code"]
    assert f"process {process.pid} has ended; its parent has not noticed yet" == (
        _found(report["process"], "process")
    )


def test_the_id_of_a_thread() -> None:
    """
    The process that the thread belongs to is named.
    """
    stay = threading.Event()
    thread = threading.Thread(target=stay.wait)
    thread.start()
    try:
        report = _doctor("-p", str(thread.native_id))
    finally:
        stay.set()
        thread.join()

    assert 3 == report["exit_code"]
    assert f"{thread.native_id} is a thread of process {os.getpid()}" == (
        _found(report["process"], "process")
    )


def test_a_file_that_was_removed(tmp_path: Path) -> None:
    """
    An interpreter that was upgraded under a running process is opened by another way.
    """
    copy = tmp_path / "python3.11"
    shutil.copy(_SYSTEM_PYTHON, copy)
    with _running([str(copy), "-c", _STAY]) as pid:
        copy.unlink()
        report = _doctor("-p", str(pid))

    assert (0, f"/proc/{pid}/exe") == (report["exit_code"], report["process"]["opened_as"])
    assert "the file was replaced or removed" in _found(report["process"], "interpreter")


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
    with _running(interpreter.command("-c", _STAY), environment) as pid:
        # Root without CAP_DAC_OVERRIDE is a user like any other.
        os.chown(closed, _NOBODY, _NOBODY)
        closed.chmod(0o700)
        report = _doctor("-p", str(pid), wrapper=_with_only("bpf", "perfmon", "sys_ptrace"))
        closed.chmod(0o755)

    assert (5, [], ["interpreter"]) == (
        report["exit_code"],
        _missing(report),
        _missing(report["process"]),
    )
    assert f"{library} may not be opened by uid 0: " in _found(report["process"], "interpreter")


def test_the_process_of_another_user() -> None:
    """
    Without CAP_DAC_READ_SEARCH even root may not open the memory of another user's process.
    """
    with _running([*_AS_NOBODY, _SYSTEM_PYTHON, "-c", _STAY]) as pid:
        refused = _doctor("-p", str(pid), wrapper=_with_only("bpf", "perfmon", "sys_ptrace"))
        granted = _doctor(
            "-p", str(pid), wrapper=_with_only("bpf", "perfmon", "sys_ptrace", "dac_read_search")
        )

    assert (5, ["memory"], 0) == (
        refused["exit_code"],
        _missing(refused["process"]),
        granted["exit_code"],
    )
    assert _found(refused["process"], "memory").endswith(
        ": CAP_DAC_READ_SEARCH is missing, and the process is of user nobody"
    )


def test_an_agent_that_is_not_root() -> None:
    """
    With the three capabilities any user's agent looks into that user's processes.
    """
    if gilscope("--version", wrapper=_AS_NOBODY).exit_code:
        pytest.skip("the checkout or the Python of the tests lies in a closed folder")
    with _running([*_AS_NOBODY, _SYSTEM_PYTHON, "-c", _STAY]) as pid:
        report = _doctor("-p", str(pid), wrapper=[*_AS_NOBODY, *_WITH_CAPABILITIES])

    assert (0, [], []) == (report["exit_code"], _missing(report), _missing(report["process"]))


def test_all_pythons_of_the_host(python: int) -> None:
    """
    The list holds those that can be traced and those that cannot, and nothing else.
    """
    with _running(["/bin/sh", "-c", "echo ready; read _"]) as shell:
        report = _doctor("--all")

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

    _doctor("-p", str(python))

    assert code == _code_of(python)


def _code_of(pid: int) -> bytes:
    for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
        span, mode, *_ = line.split()
        if "x" in mode and line.endswith(_SYSTEM_PYTHON):
            begin, end = (int(address, 16) for address in span.split("-"))
            with Path(f"/proc/{pid}/mem").open("rb") as memory:
                memory.seek(begin)
                return memory.read(end - begin)
    message = "no code of the interpreter is mapped"
    raise AssertionError(message)
