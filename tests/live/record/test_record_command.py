"""``gilscope record -- COMMAND``: what it does with a program that it starts itself."""

import signal
import stat
from pathlib import Path

import pytest

from gilscope.process import procfs
from support.commands.gilscope import eventually, gilscope, gilscope_started
from support.commands.json_reports import assert_consistent, only_process
from support.interpreters.builds import build
from support.paths import WORKLOADS

pytestmark = [pytest.mark.live, pytest.mark.beside_others]

_PYTHON = "/usr/bin/python3"
_SHORT_LIVED = str(WORKLOADS / "short_lived.py")
_TRACING = "Tracing the GIL of"
# One static build and one whose GIL is in a library that the loader has yet to map.
_BUILDS = ("debian-3.11", "pyenv-3.8", "pyenv-3.13")


_AT_ONCE = """\
import _thread, os, sys
done = _thread.allocate_lock()
done.acquire()
def crunch(rounds):
    for _ in range(rounds):
        sum(range(1000))
    done.release()
_thread.start_new_thread(crunch, (2000,))
for _ in range(2000):
    sum(range(1000))
done.acquire()
os._exit(0)
"""


@pytest.mark.parametrize("name", _BUILDS)
def test_program_that_ends_before_anybody_looks_is_counted_whole(name: str) -> None:
    """
    A program that fights and ends while the agent sleeps is in the threads and the histograms.
    """
    python = build(name).argv
    arguments = ("record", "--format", "json", "--", *python, "-S", "-c", "input();" + _exec())
    with gilscope_started(*arguments) as command:
        command.says(_TRACING)
        (child,) = eventually(lambda: _children(command.pid))
        # Whoever is stopped while it holds a program holds it until it goes on.
        eventually(lambda: _runs_freely(child))
        command.send(signal.SIGSTOP)
        assert command.process.stdin is not None
        command.process.stdin.write("\n")
        command.process.stdin.flush()
        eventually(lambda: _state(child) == "Z")
        command.send(signal.SIGCONT)
        outcome = command.outcome()
    report = only_process(outcome.output)

    assert 0 == outcome.exit_code
    assert report["totals"]["waits"] > 0
    assert [0] == [interpreter["id"] for interpreter in report["interpreters"]]
    assert_consistent(report)


def _exec() -> str:
    return f"exec({_AT_ONCE!r})"


def _children(pid: int) -> list[int]:
    """Return the commands that were started, without the process that holds the probes."""
    children = map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
    return [child for child in children if procfs.read_status(child).name != "gilscope-keeper"]


def _runs_freely(pid: int) -> bool:
    return "\nTracerPid:\t0\n" in Path(f"/proc/{pid}/status").read_text()


def _state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


@pytest.mark.parametrize("name", _BUILDS)
def test_exit_code_of_the_command_is_passed_on(name: str) -> None:
    """
    The command's own exit code is that of the recording, whose report comes all the same.
    """
    outcome = gilscope("record", "--", *build(name).argv, _SHORT_LIVED, typed="\n")

    assert 7 == outcome.exit_code
    assert "Fight._fighter (" in outcome.output or "_fighter (" in outcome.output
    assert "until the process ended" in outcome.output


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV])
def test_signal_that_ends_the_command_is_passed_on(number: signal.Signals) -> None:
    """
    A command that a signal ends gives 128 and the signal's number, as in a shell.
    """
    code = f"import os; os.kill(os.getpid(), {int(number)})"
    outcome = gilscope("record", "--", _PYTHON, "-c", code)

    assert 128 + number == outcome.exit_code
    assert "None: no thread had to wait for the GIL." in outcome.output


@pytest.mark.parametrize("name", ["debian-3.11", "pyenv-3.13"])
def test_shell_that_becomes_python_is_followed(name: str) -> None:
    """
    ``sh -c 'exec python …'`` is traced as that Python, from exec to exec.
    """
    (python,) = build(name).argv
    outcome = gilscope(
        *("record", "--", "sh", "-c", 'exec env "$0" "$@"', python, _SHORT_LIVED), typed="\n"
    )

    assert 7 == outcome.exit_code
    assert "short_lived.py, pid " in outcome.output
    assert "until the process ended" in outcome.output


def test_version_manager_is_followed(tmp_path: Path) -> None:
    """
    A script that runs programs and gets signals before it becomes Python is no obstacle.
    """
    (python,) = build("pyenv-3.13").argv
    shim = tmp_path / "python"
    shim.write_text(
        "#!/usr/bin/env bash\nset -e\ntrap 'signalled=1' USR1\nkill -USR1 $$\n"
        'version="$(sh -c "echo 3")"\n[ "$version$signalled" = 31 ]\n'
        f'exec "{python}" "$@"\n'
    )
    shim.chmod(shim.stat().st_mode | stat.S_IXUSR)

    outcome = gilscope("record", "--", str(shim), _SHORT_LIVED, typed="\n")

    assert 7 == outcome.exit_code
    assert "short_lived.py, pid " in outcome.output


def test_command_that_is_not_python_runs_to_its_end_first() -> None:
    """
    A command without Python does its work; only then the message and exit code 3 come.
    """
    outcome = gilscope("record", "--", "sh", "-c", "read line; echo $line; exit 5", typed="x\n")

    assert (3, "x\n") == (outcome.exit_code, outcome.output)
    assert outcome.messages.startswith("error: the command ended without having run Python")


def test_python_in_a_child_of_the_command_is_not_mistaken_for_it() -> None:
    """
    Without children, a shell that starts one is not Python; the message says what to do.
    """
    outcome = gilscope(
        "record", "--no-children", "--", "sh", "-c", f"{_PYTHON} -c 'print(1)'; exit 5"
    )

    assert (3, "1\n") == (outcome.exit_code, outcome.output)
    assert "To trace what runs already" in outcome.messages
    assert "-p PID" in outcome.messages


def test_command_that_does_not_exist() -> None:
    """
    A command that cannot be found gives 127 and says so, as in a shell.
    """
    outcome = gilscope("record", "--", "no-such-command-anywhere")

    assert (127, "") == (outcome.exit_code, outcome.output)
    assert [
        "error: cannot start no-such-command-anywhere: No such file or directory",
        "To trace running processes by their command line: --match no-such-command-anywhere",
    ] == outcome.messages.splitlines()


def test_command_that_may_not_be_executed(tmp_path: Path) -> None:
    """
    A file that is not executable gives 126, as in a shell.
    """
    script = tmp_path / "script"
    script.touch()
    outcome = gilscope("record", "--", str(script))

    assert (126, "") == (outcome.exit_code, outcome.output)
    assert f"error: cannot start {script}: Permission denied\n" == outcome.messages


def test_ctrl_c_reaches_the_command_and_its_report_comes() -> None:
    """
    Ctrl-C in a terminal goes to both; the command ends in its own way, and is reported.
    """
    arguments = ("record", "--", _PYTHON, str(WORKLOADS / "convoy.py"))
    with gilscope_started(*arguments) as command:
        command.says(_TRACING)
        eventually(lambda: '"ready": true' in command.output)
        command.interrupt()
        outcome = command.outcome()

    assert 0 == outcome.exit_code
    assert "convoy.py, pid " in outcome.output
    assert "Whose code kept the GIL, of " in outcome.output


def test_sigterm_ends_a_command_that_is_not_python_yet() -> None:
    """
    A wrapper that hangs does not keep gilscope from ending when it is told to.
    """
    shell = ("sh", "-c", f"echo hanging; read line; exec {_PYTHON} -c pass")
    with gilscope_started("record", "--", *shell) as command:
        eventually(lambda: command.output == "hanging\n")
        command.send(signal.SIGTERM)
        # With the end of standard input the wrapper would go on.
        command.process.wait(30)
        outcome = command.outcome()

    assert 3 == outcome.exit_code
    assert outcome.messages.startswith("error: the command ended without having run Python")


def test_duration_ends_the_command() -> None:
    """
    When the time of -d is over, the command is asked to end, and its exit code is passed on.
    """
    convoy = str(WORKLOADS / "convoy.py")
    outcome = gilscope("record", "-d", "0.5", "--", _PYTHON, convoy)

    assert 0 == outcome.exit_code
    assert "crunch (" in outcome.output
    assert outcome.messages.endswith("done\n")


def test_duration_ends_a_command_that_never_runs_python() -> None:
    """
    Its time counts from the start of the command, which is asked to end then.
    """
    shell = ("sh", "-c", "trap 'echo asked; exit 0' TERM; echo begun; while :; do read line; done")
    with gilscope_started("record", "-d", "300ms", "--", *shell) as command:
        command.process.wait(30)
        outcome = command.outcome()

    assert (3, "begun\nasked\n") == (outcome.exit_code, outcome.output)
    assert outcome.messages.startswith(
        "error: the command had not run Python itself when it was time to end\n"
    )


def test_ctrl_c_ends_the_wait_for_an_interpreter() -> None:
    """
    A command that does not end by Ctrl-C is waited for, but not for its interpreter any more.
    """
    # A trap ends the read as well.
    script = "trap 'echo no' INT; echo begun; until read line; do :; done"
    shell = ("sh", "-c", f"{script}; exec {_PYTHON} -c 'print(1)'")
    with gilscope_started("record", "--", *shell) as command:
        eventually(lambda: command.output == "begun\n")
        command.interrupt()
        eventually(lambda: command.output == "begun\nno\n")
        (child,) = _children(command.pid)
        eventually(lambda: "\nTracerPid:\t0\n" in Path(f"/proc/{child}/status").read_text())
        assert command.process.stdin is not None
        command.process.stdin.write("\n")
        command.process.stdin.flush()
        outcome = command.outcome()

    assert (3, "begun\nno\n1\n") == (outcome.exit_code, outcome.output)
    assert "the command had not run Python itself when it was time to end" in outcome.messages


def test_report_goes_to_the_file_and_the_command_keeps_its_output(tmp_path: Path) -> None:
    """
    With -o nothing of gilscope's is on standard output: that belongs to the command.
    """
    report = tmp_path / "report.json"
    outcome = gilscope(
        *("record", "--format", "json", "-o", str(report)),
        *("--", _PYTHON, "-c", "import sys; print(1); print(2, file=sys.stderr)"),
    )

    assert (0, "1\n") == (outcome.exit_code, outcome.output)
    assert "2" in outcome.messages.splitlines()
    assert 2 == len(outcome.messages.splitlines())
    assert_consistent(only_process(report.read_text()))


def test_report_can_be_printed_in_any_locale() -> None:
    """
    A terminal or pipe that knows ASCII only gets the report with substitutes, not a traceback.
    """
    outcome = gilscope(
        *("record", "--", _PYTHON, _SHORT_LIVED), typed="\n", extra={"PYTHONIOENCODING": "ascii"}
    )

    assert 7 == outcome.exit_code
    assert "Who waited most" in outcome.output
