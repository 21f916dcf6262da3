"""Standard streams that are full, closed, stuck or gone, and environments that are odd."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from faults.bench import Bench
from faults.plain_words import not_plain
from faults.registry import Failed, Verdict, fault
from faults.targets import SYSTEM_PYTHON
from support.commands.gilscope import eventually
from support.commands.serve import Service
from support.ports import free_port
from support.stm_log.program import played_log

_SIGPIPE_CODES = (0, -signal.SIGPIPE, 128 + signal.SIGPIPE)
_STUCK = """
import os, subprocess, sys
read, write = os.pipe()
os.set_blocking(write, False)
try:
    while True:
        os.write(write, b"x" * 65536)
except BlockingIOError:
    pass
try:
    while True:
        os.write(write, b"x")
except BlockingIOError:
    pass
os.set_blocking(write, True)
os.set_inheritable(read, True)
os.dup2(write, 2)
os.execvp(sys.argv[1], sys.argv[1:])
"""


def _commands(bench: Bench) -> list[list[str]]:
    """Return a command line of every kind that writes to standard output."""
    log = bench.folder / "app.log"
    log.write_bytes(played_log("E16", 500).content)
    target = bench.target()
    pid = str(target.pid)
    return [
        ["record", "-p", pid, "-d", "0.3"],
        ["record", "-p", pid, "-d", "0.3", "--format", "json"],
        ["doctor"],
        ["doctor", "--format", "json"],
        ["stm", "report", str(log)],
        ["stm", "report", str(log), "--format", "json"],
        ["stm", "follow", str(log), "--count", "1", "--every", "0.1"],
        ["export", "metrics", str(bench.folder / "exported")],
        ["--help"],
        ["record", "--help"],
    ]


def _each(bench: Bench, shell: str, *codes: int) -> None:
    """Run every command as *shell* says; expect one of *codes* and plain words."""
    for line in _commands(bench):
        outcome = bench.run(*line, wrapper=("sh", "-c", shell, "sh"))
        said = " ".join(line[:2])
        words = f"{said}: exit code {outcome.exit_code}: {outcome.messages[-150:]!r}"
        try:
            bench.expect(Verdict.UNCLEAR_MESSAGE, outcome.exit_code in codes, words)
            bench.says_plainly(outcome.messages, said)
        except Failed as failed:
            bench.failures.append(failed)


@fault("dev_full", "stdout is /dev/full, for every command: exit code 1 and words, no traceback")
def _dev_full(bench: Bench) -> None:
    # A command that writes a folder says nothing to standard output, and has done its work.
    _each(bench, '"$@" >/dev/full', 1, 0)


@fault("closed_stdout", "stdout is closed, for every command: exit code 1 with words, or 0")
def _closed_stdout(bench: Bench) -> None:
    _each(bench, '"$@" >&-', 0, 1)


@fault("closed_stderr", "stderr is closed: a report on stdout, and no other words there")
def _closed_stderr(bench: Bench) -> None:
    target = bench.target()
    for shell in ('"$@" 2>&-', '"$@" 2>&- <&-'):
        line = ("record", "-p", str(target.pid), "-d", "0.3", "--format", "json")
        outcome = bench.run(*line, wrapper=("sh", "-c", shell, "sh"))
        bench.equal(Verdict.AGENT_DIED, 0, outcome.exit_code, "exit code")
        try:
            json.loads(outcome.output)
        except ValueError:
            words = f"stdout is no JSON: {outcome.output[:100]!r}"
            bench.expect(Verdict.UNCLEAR_MESSAGE, is_so=False, seen=words)


@fault(
    "broken_pipe", "`| head -1` and `| true`, for every command: exit code 0 or SIGPIPE's, no words"
)
def _broken_pipe(bench: Bench) -> None:
    for reader in ("head -1", "true"):
        shell = f'{{ "$@"; echo $? >{bench.folder}/code; }} | {reader} >/dev/null'
        for line in _commands(bench):
            outcome = bench.run(*line, wrapper=("sh", "-c", shell, "sh"))
            said = " ".join(line[:2])
            found = not_plain(outcome.messages)
            if found:
                words = f"{said} | {reader}: {found}"
                bench.failures.append(Failed(Verdict.UNCLEAR_MESSAGE, words))
            code = int(eventually((bench.folder / "code").read_text))
            words = f"{said} | {reader}: exit code {code}"
            if code not in (*_SIGPIPE_CODES, 1):
                bench.failures.append(Failed(Verdict.UNCLEAR_MESSAGE, words))
        if bench.is_half:
            break


def _serve_through(bench: Bench, *wrapper: str) -> tuple[Service, Path]:
    """Serve while standard error leads nowhere; the port is found by who listens."""
    port = free_port()
    each = ("--per-process", "--match", str(bench.folder))
    line = ("serve", "--listen", f"127.0.0.1:{port}", *each)
    command = bench.agent(*line, wrapper=wrapper)
    return Service(command, "127.0.0.1", port, f"http://127.0.0.1:{port}/"), bench.folder


def _answers(service: Service) -> bool:
    try:
        return service.get("/healthz").status == 200
    except OSError:
        return False


def _serves_on(bench: Bench, *wrapper: str) -> None:
    service, folder = _serve_through(bench, *wrapper)
    died = "serve ended"
    eventually(lambda: _answers(service) or service.command.process.poll() is not None)
    bench.expect(Verdict.AGENT_DIED, service.command.process.poll() is None, died)
    refused = folder / "refused.py"
    refused.write_text("import time\nprint('ready', flush=True)\ntime.sleep(60)\n")
    for _ in bench.times(3, 30):
        # What is refused is told on standard error.
        line = [_refused_python(), str(refused)]
        with subprocess.Popen(line, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            process.stdout.readline()
            bench.expect(Verdict.HANGS, _answers(service), "/healthz does not answer")
            process.kill()
    target = bench.target()
    bench.counts_rightly(service, target)


def _refused_python() -> str:
    """Return a Python that is refused, or any where pyenv has none."""
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    return next((str(path) for path in root.glob("3.6.*/bin/python3.6")), sys.executable)


@fault("stderr_full", "stderr of serve is /dev/full: it goes on serving", half=True)
def _stderr_full(bench: Bench) -> None:
    _serves_on(bench, "sh", "-c", 'exec "$@" 2>/dev/full', "sh")


@fault("stderr_gone", "stderr of serve is a pipe whose reader has gone: it goes on serving")
def _stderr_gone(bench: Bench) -> None:
    _serves_on(bench, "bash", "-c", 'exec "$@" 2> >(exit)', "bash")


@fault("stderr_stuck", "stderr of serve is a full pipe that nobody reads: it goes on serving")
def _stderr_stuck(bench: Bench) -> None:
    _serves_on(bench, SYSTEM_PYTHON, "-SEc", _STUCK)


_ODD: dict[str, dict[str, str]] = {
    "posix_ascii": {"PYTHONUTF8": "0", "LC_ALL": "POSIX", "PYTHONCOERCECLOCALE": "0"},
    "io_ascii": {"PYTHONIOENCODING": "ascii"},
    "columns": {"COLUMNS": "-1", "LINES": "0"},
    "columns_huge": {"COLUMNS": "99999999999999999999"},
    "time_zone": {"TZ": ":/dev/null/\x01"},
    "warnings": {"PYTHONWARNINGS": "error"},
    "hash_seed": {"PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"},
    "colour": {"FORCE_COLOR": "1", "NO_COLOR": "", "TERM": "\x1b[31m"},
    "locale": {"LC_ALL": "xx_YY.UTF-99", "LANG": "\udcff"},
}


def _odd_environment(kind: str) -> None:
    @fault(f"environment_{kind}", f"odd environment: {_ODD[kind]!a}: every command works")
    def check(bench: Bench) -> None:
        script = bench.folder / "caf\u00e9-\u4e16.py"
        script.write_bytes(_CONTEND.read_bytes())
        target = bench.target(program=script)
        for line in (["record", "-p", str(target.pid), "-d", "0.3"], ["--help"], ["doctor"]):
            outcome = bench.run(*line, extra=_ODD[kind])
            words = f"{line[0]}: exit code {outcome.exit_code}: {outcome.messages[-200:]!r}"
            bench.equal(Verdict.UNCLEAR_MESSAGE, 0, outcome.exit_code, words)


_CONTEND = Path(__file__).resolve().parents[1] / "programs" / "contend.py"
for _kind in _ODD:
    _odd_environment(_kind)


@fault("cwd_deleted", "the working directory is deleted: record works, also with -o in words")
def _cwd_deleted(bench: Bench) -> None:
    target = bench.target()
    gone = bench.folder / "gone"
    shell = f'mkdir -p {gone}; cd {gone}; rmdir {gone}; exec "$@"'
    line = ("record", "-p", str(target.pid), "-d", "0.3")
    outcome = bench.run(*line, wrapper=("sh", "-c", shell, "sh"))
    bench.equal(Verdict.AGENT_DIED, 0, outcome.exit_code, outcome.messages[-200:])
    outcome = bench.run(*line, "-o", "report", wrapper=("sh", "-c", shell, "sh"))
    words = f"exit code {outcome.exit_code}: {outcome.messages[-200:]}"
    bench.expect(Verdict.UNCLEAR_MESSAGE, outcome.exit_code in (1, 2), words)


@fault(
    "hostile_folder",
    "json.py, bcc.py, signal.py of somebody in the working directory: not run",
    half=True,
)
def _hostile_folder(bench: Bench) -> None:
    target = bench.target()
    folder = bench.folder / "hostile"
    folder.mkdir()
    mark = bench.folder / "was-run"
    for name in ("json", "bcc", "signal", "logging", "yaml", "textual"):
        (folder / f"{name}.py").write_text(f"open({str(mark)!r}, 'w')\nraise SystemExit(77)\n")
    program = Path(sys.executable).with_name("gilscope")
    if not program.exists():
        # `python -m` looks into the working directory by itself, the installed program does not.
        program = bench.folder / "gilscope"
        code = "import sys\nfrom gilscope.cli import main\nsys.exit(main())\n"
        program.write_text(f"#!{sys.executable}\n{code}")
        program.chmod(0o755)
    line = [str(program), "record", "-p", str(target.pid), "-d", "0.3"]
    ended = subprocess.run(line, cwd=folder, capture_output=True, text=True, check=False)
    bench.equal(Verdict.AGENT_DIED, 0, ended.returncode, ended.stderr[-200:])
    bench.equal(Verdict.TARGET_HARMED, False, mark.exists(), "somebody's module was run as root")
