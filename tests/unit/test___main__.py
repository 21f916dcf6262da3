"""The process of every command: its signals, its streams and its limits, seen from outside."""

import io
import os
import random
import re
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from gilscope.cli import COMMANDS, build_parser
from support.paths import AGENT

_MB = 1 << 20


def _environment(**extra: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(AGENT), **extra}


def _run(
    arguments: Sequence[str],
    *,
    begin: Callable[[], None] | None = None,
    stdout: int | None = subprocess.PIPE,
    **extra: str,
) -> subprocess.CompletedProcess[str]:
    # PLW1509: what runs before the program is a system call.
    return subprocess.run(
        [sys.executable, "-m", "gilscope", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=subprocess.PIPE,
        env=_environment(**extra),
        check=False,
        encoding="utf-8",
        errors="surrogateescape",
        timeout=60,
        preexec_fn=begin,
    )


_TALKING = (["--help"], ["record", "--help"], ["--version"], ["export", "metrics", "made"])


@pytest.mark.parametrize("arguments", _TALKING, ids=" ".join)
def test_full_disk_behind_stdout_is_an_error_in_words(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    What could not be written is said, with exit code 1.
    """
    monkeypatch.chdir(tmp_path)
    with Path("/dev/full").open("w") as full:
        outcome = _run(arguments, stdout=full.fileno())

    assert 1 == outcome.returncode
    assert "error: cannot write to standard output: No space left on device\n" == outcome.stderr


@pytest.mark.parametrize("arguments", _TALKING, ids=" ".join)
def test_reader_that_has_gone_is_no_error(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Whoever reads only the beginning, as head does, has had what he wanted: 0, and no words.
    """
    monkeypatch.chdir(tmp_path)
    reader, writer = os.pipe()
    os.close(reader)
    outcome = _run(arguments, stdout=writer)
    os.close(writer)

    assert (0, "") == (outcome.returncode, outcome.stderr.replace(_WRITTEN, ""))


_WRITTEN = "1 of 1 files were written anew.\n"


def test_closed_stdout_is_an_error_in_words() -> None:
    """
    A report that goes nowhere does not pass for one.
    """
    outcome = _run(["--help"], begin=lambda: os.close(1))

    assert 1 == outcome.returncode
    assert "error: cannot write to standard output: Bad file descriptor\n" == outcome.stderr


def test_closed_streams_are_not_given_to_other_files(tmp_path: Path) -> None:
    """
    What is said on a closed standard error is in no file that is opened later.
    """
    outcome = _run(["export", "metrics", str(tmp_path)], begin=lambda: os.closerange(0, 3))

    assert 1 == outcome.returncode
    made = (tmp_path / "metrics.md").read_text()
    assert made.startswith("# Metrics")
    assert "written anew" not in made


def test_stderr_that_takes_nothing_costs_only_words(tmp_path: Path) -> None:
    """
    A full disk behind standard error changes no exit code.
    """
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "gilscope", "export", "metrics", str(tmp_path)],
            stdout=subprocess.PIPE,
            stderr=full,
            env=_environment(),
            check=False,
            timeout=60,
        )

    assert (0, f"{tmp_path}/metrics.md\n".encode()) == (done.returncode, done.stdout)


def test_names_that_the_encoding_lacks_are_escaped(tmp_path: Path) -> None:
    """
    With ASCII and no UTF-8 mode files are read as before, and output is escaped.
    """
    folder = tmp_path / "é\udcff"
    outcome = _run(
        ["export", "metrics", str(folder)], PYTHONUTF8="0", LC_ALL="POSIX", PYTHONCOERCECLOCALE="0"
    )

    assert (0, _WRITTEN) == (outcome.returncode, outcome.stderr)
    assert outcome.stdout.isascii()
    assert (folder / "metrics.md").exists()


_STARTS = """\
import sys
print("up", flush=True)
from gilscope.__main__ import main
sys.exit(main())
"""


def _catches(pid: int, number: int) -> bool:
    status = Path(f"/proc/{pid}/status").read_text()
    (mask,) = re.findall(r"(?m)^SigCgt:\t(\w+)", status)
    return bool(int(mask, 16) >> (number - 1) & 1)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_end_it_without_words_at_any_time(number: signal.Signals, tmp_path: Path) -> None:
    """
    During imports, while it works and at its end: by the signal's own action, or done.
    """
    for step in range(8):
        process = subprocess.Popen(
            [sys.executable, "-c", _STARTS, "export", "rules", str(tmp_path / str(step))],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=_environment(),
            text=True,
        )
        assert process.stdout is not None
        assert "up\n" == process.stdout.readline()
        # Before, Python itself has the signal.
        while _catches(process.pid, signal.SIGINT):
            assert process.poll() is None
        time.sleep(step * 0.03)
        process.send_signal(number)
        output, messages = process.communicate(timeout=30)

        assert process.returncode in {-number, 0}, messages
        assert "Traceback" not in messages
        assert process.returncode or "5 of 5 files" in messages, output


_HANGS = """\
import os, sys
from gilscope.system import ending
from gilscope import __main__, cli
class Hangs:
    SUMMARY, EXAMPLES = "hang", ""
    @staticmethod
    def prepare_parser(parser): parser.add_argument("how")
    @staticmethod
    def run(arguments):
        import threading
        def hang():
            print("hangs", flush=True)
            if arguments.how == "read":
                os.read(0, 1)
            else:
                # No handler of Python's runs in here, and no signal ends the call.
                import ctypes
                ctypes.CDLL(None).sleep(600)
                ctypes.CDLL(None).sleep(600)
        if arguments.how.startswith("begun"):
            with ending.told(): hang()
        else:
            hang()
        return 0
cli.COMMANDS = {**cli.COMMANDS, "hang": Hangs}
sys.exit(__main__.main())
"""


def _hanging(how: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", _HANGS, "hang", how],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=_environment(),
        text=True,
    )
    assert process.stdout is not None
    assert "hangs\n" == process.stdout.readline()
    return process


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("how", ["read", "call", "begun"])
def test_what_hangs_is_ended_all_the_same(how: str, number: signal.Signals) -> None:
    """
    In a read that is tried again, or in a call that runs no handler: by the signal, in words.
    """
    with _hanging(how) as process:
        process.send_signal(number)
        # Its input stays open until then: at its end the read returns, and all is done.
        process.wait(timeout=20)
        _, messages = process.communicate()

    assert -number == process.returncode
    assert "Traceback" not in messages
    if how == "begun":
        assert f"error: gilscope did not end in time after {number.name}" in messages


def test_second_signal_ends_it_at_once() -> None:
    """
    Who presses Ctrl-C twice does not wait, and is told nothing.
    """
    with _hanging("begun") as process:
        process.send_signal(signal.SIGTERM)
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        _, messages = process.communicate(timeout=20)

    assert (-signal.SIGINT, "") == (process.returncode, messages)


@pytest.mark.parametrize("limit_mb", [24, 28, 34, 40])
def test_short_memory_is_said(limit_mb: int, tmp_path: Path) -> None:
    """
    Little address space: done, or exit code 6 and words that name the limit.

    Where exactly it ends, which differs from run to run, Python itself may crash.
    """
    limit = limit_mb * _MB
    outcome = _run(
        ["export", "rules", str(tmp_path)],
        begin=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
    )

    if outcome.returncode in _CRASHES:
        return
    assert outcome.returncode in {0, 6}, outcome.stderr
    assert "Traceback" not in outcome.stderr
    assert outcome.returncode == 0 or "RLIMIT_AS" in outcome.stderr


_CRASHES = (-signal.SIGSEGV, -signal.SIGABRT)
_WITHOUT_MEMORY = """\
import resource, sys
class Mishap:
    def find_spec(self, name, *_):
        if name in ({names}):
            raise {mishap}
sys.meta_path.insert(0, Mishap())
resource.setrlimit(resource.RLIMIT_AS, ({limit}, {limit}))
from gilscope.__main__ import main
sys.exit(main())
"""


@pytest.mark.parametrize(
    ("names", "mishap"),
    [
        ("'gilscope.cli',", "SyntaxError('expected :')"),
        ("'gilscope.cli',", "SystemError('error return without exception set')"),
        ("'gilscope.cli',", "MemoryError"),
        ("'gilscope.cli', 'gilscope.system.shortage'", "MemoryError"),
    ],
)
def test_what_python_makes_of_short_memory_is_said(names: str, mishap: str) -> None:
    """
    While modules are imported it may call correct source wrong: with a limit, that is the cause.
    """
    code = _WITHOUT_MEMORY.format(names=names, mishap=mishap, limit=1 << 32)
    command = [sys.executable, "-c", code, "--version"]

    outcome = subprocess.run(command, capture_output=True, text=True, check=False)

    assert 6 == outcome.returncode, outcome.stderr
    assert outcome.stderr.startswith("error: gilscope cannot be loaded: memory is short (RLIMIT_AS")


def test_what_is_wrong_without_a_limit_is_shown() -> None:
    """
    A defect is not called a lack of memory.
    """
    code = _WITHOUT_MEMORY.format(
        names="'gilscope.cli',", mishap="SyntaxError('wrong')", limit="resource.RLIM_INFINITY"
    )

    outcome = subprocess.run(
        [sys.executable, "-c", code, "--version"], capture_output=True, text=True, check=False
    )

    assert (1, "SyntaxError: wrong") == (outcome.returncode, outcome.stderr.splitlines()[-1])


_VALUES = (
    *("0", "-1", "1e300", "-1e308", "nan", "inf", "1e-300", str(2**31), str(2**63), str(10**30)),
    *(
        "9" * 5000,
        "",
        " ",
        "\udcff",
        "\x1b[31m",
        "é",
        "0x10",
        "1_0",
        "٣",
        "a{99999999999}",
        "(" * 999,
    ),
    *(
        "/nonexistent/x/y",
        "/",
        ":0x",
        "[::1",
        "..:0",
        "\udcff:0",
        "none",
        "text=",
        "=",
        "--",
        "-",
        "\x1b[31m",
    ),
)
_OPTIONS = (
    *("-p", "--pid", "-d", "--duration", "--mode", "--method", "--format", "-o", "--output"),
    *("--match", "--all", "--interval", "--overhead-budget", "--pairs", "--no-stacks", "--force"),
    *("--runbooks", "--bogus", "-h", "--web.config.file"),
)


def _line(lots: random.Random) -> list[str]:
    words = [lots.choice([*COMMANDS, "", "bogus"])]
    more = range(lots.randrange(5))
    return words + [lots.choice(_OPTIONS if lots.random() < 0.6 else _VALUES) for _ in more]


def test_senseless_command_lines_are_refused_in_words(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    600 lines of anything: parsed, or refused with exit code 2 and words, never a traceback.
    """
    monkeypatch.chdir(tmp_path)
    assert isinstance(sys.stderr, io.TextIOWrapper)
    sys.stderr.reconfigure(errors="backslashreplace")  # as in the process of its own
    lots = random.Random(4711)  # noqa: S311 - to find again what it has found
    refused = 0
    for _ in range(600):
        line = _line(lots)
        code = _parsed(line)
        said = capsys.readouterr()

        assert code in {None, 0, 2}, line
        assert code is None or said.err or said.out, line
        assert "\x1b" not in said.err + said.out, line
        refused += code == 2

    assert refused > 300


def _parsed(line: Sequence[str]) -> object:
    """Return the exit code of a line that is refused or asks for help, None for others."""
    try:
        build_parser().parse_args(line)
    except SystemExit as end:
        return end.code
    return None


@pytest.mark.parametrize("command", [["record"], ["serve", "--listen", "127.0.0.1:0"]])
@pytest.mark.parametrize("pid", ["0", "-1", str(2**31), str(2**32 + 1), str(2**63), str(10**30)])
def test_number_that_no_process_has(command: list[str], pid: str) -> None:
    """
    Exit code 3, and the numbers that there are, before anything else is tried.
    """
    outcome = _run([*command, "-p", pid])

    assert (3, "") == (outcome.returncode, outcome.stdout)
    assert f"error: there is no process {pid}: pids go from 1 to 4194304" in outcome.stderr


@pytest.mark.parametrize("pid", ["0", "-1", str(2**63), str(10**30)])
def test_doctor_says_what_works_whatever_the_number_is(pid: str) -> None:
    """
    The machine is looked at all the same, and the process is not there.
    """
    outcome = _run(["doctor", "-p", pid])

    assert f"there is no process {pid}\n" in outcome.stdout
    assert "Traceback" not in outcome.stdout + outcome.stderr


@pytest.mark.parametrize("host", ["\udcff:0", "é" * 70 + ":0", "..:0"])
def test_host_that_cannot_be_one(host: str) -> None:
    """
    Exit code 9 in words, whatever stands for the host.
    """
    outcome = _run(["serve", "--stm-log", "none", "--listen", host])

    assert 9 == outcome.returncode
    assert re.match(r"error: cannot listen on ", outcome.stderr)


def test_without_a_command_the_commands_are_listed() -> None:
    """
    On stderr, and with the code of a usage error: a script has forgotten something.
    """
    ended = _run([])

    assert 2 == ended.returncode
    assert not ended.stdout
    listed = re.findall(r"^    (\w+)  ", ended.stderr, re.MULTILINE)
    assert list(COMMANDS) == listed
