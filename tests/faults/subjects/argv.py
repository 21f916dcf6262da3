"""Command lines that make no sense, and processes that cannot be traced."""

import contextlib
import os
import random
import socket
import stat
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from faults.bench import Bench
from faults.registry import Failed, Verdict, fault
from faults.targets import SYSTEM_PYTHON
from support.interpreters.stand_ins import cpython_3_5

_DOCUMENTED = (*range(15), 126, 127)
_WORDS = (
    *("record", "serve", "stm", "doctor", "top", "export", "report", "follow", "metrics", "rules"),
    *("-p", "-d", "-o", "--mode", "--format", "--all", "--match", "--listen", "--", "--pairs"),
    *("--overhead-budget", "--method", "--every", "--count", "--places", "--no-stacks", "--help"),
    *("full", "auto", "json", "perfetto=x", "", "-", "0", "-1", "nan", "inf", "1e300", "2**63"),
    *(
        "99999999999999999999",
        "\u202e",
        "\x1b[31m",
        "(",
        "[",
        "*",
        "/dev/null",
        "%",
        "1%",
        "\udcff",
    ),
)
_LIMITS = (
    *("0", "-1", "nan", "inf", "-inf", "1e300", "1e308", "1e-300", "1099511627776", "0x10"),
    *("99999999999999999999999", "9" * 5000, "", " ", "1_0", "\u0661"),
)


def _is_refused_well(bench: Bench, line: Sequence[str], codes: Sequence[int] = _DOCUMENTED) -> None:
    """Run a command line that ends by itself; expect a documented exit code, and words with it."""
    command = bench.agent(*line)
    assert command.process.stdin is not None
    command.process.stdin.close()
    said = " ".join(word[:20] for word in line)
    try:
        code = command.process.wait(8)
    except subprocess.TimeoutExpired:
        # Some command lines make sense by chance: these go on until they are told to end.
        command.process.terminate()
        command.process.wait(30)
        return
    try:
        words = f"{said!a}: exit code {code}: {command.messages[-150:]!r}"
        bench.expect(Verdict.UNCLEAR_MESSAGE, code in codes, words)
        bench.says_plainly(command.messages, said)
        has_words = code == 0 or command.messages.strip() or command.output.strip()
        bench.expect(Verdict.UNCLEAR_MESSAGE, has_words, f"{said!a}: exit code {code}, no words")
    except Failed as failed:
        bench.failures.append(failed)


@fault(
    "argv_fuzz", "500 senseless command lines: documented exit codes, words with each", limit_s=1800
)
def _argv_fuzz(bench: Bench) -> None:
    chance = random.Random(13)
    for _ in bench.times(20, 500):
        line = [chance.choice(_WORDS[:6])]
        line += [chance.choice(_WORDS) for _ in range(chance.randrange(6))]
        _is_refused_well(bench, line)


_NUMBERS = {
    "duration": ("record", "-p", "{pid}", "-d"),
    "record_pid": ("record", "-d", "0.1", "-p"),
    "serve_pid": ("serve", "--listen", "127.0.0.1:0", "-p"),
    "doctor_pid": ("doctor", "-p"),
    "pairs": ("serve", "--listen", "127.0.0.1:0", "-p", "{pid}", "--pairs"),
    "budget": ("serve", "--listen", "127.0.0.1:0", "-p", "{pid}", "--overhead-budget"),
    "every": ("stm", "follow", "/nothing", "--count", "1", "--every"),
    "places": ("stm", "follow", "/nothing", "--count", "1", "--places"),
}


def _number(name: str) -> None:
    @fault(
        f"argv_{name}",
        f"numbers at their limits for `{' '.join(_NUMBERS[name])}`: exit code and words",
        half=name == "record_pid",
        limit_s=600,
    )
    def check(bench: Bench) -> None:
        target = bench.target()
        begin = [word.format(pid=target.pid) for word in _NUMBERS[name]]
        limits = [*_LIMITS, str(2**31), str(2**63), str(2**32 + target.pid)]
        for turn in bench.times(8, len(limits)):
            # The most telling ones first.
            _is_refused_well(bench, [*begin, limits[-1 - turn]])


for _name in _NUMBERS:
    _number(_name)


@contextmanager
def _refused_processes() -> Iterator[dict[str, int]]:
    """Yield processes and ids that are no Python that gilscope knows."""
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        pids = {"pid 0": 0, "kernel thread": 2, "no process": 2**22 - 1}
        lines = {"a shell": ["sh", "-c", "while :; do sleep 1; done"]}
        lines["CPython 3.5"] = [str(cpython_3_5(folder))]
        for name, line in lines.items():
            process = stack.enter_context(subprocess.Popen(line, stdin=subprocess.PIPE))
            stack.callback(process.kill)
            pids[name] = process.pid
        zombie = stack.enter_context(subprocess.Popen(["true"]))
        os.waitid(os.P_PID, zombie.pid, os.WEXITED | os.WNOWAIT)
        pids["zombie"] = zombie.pid
        yield pids


@fault(
    "refused",
    "other Pythons, shell, kernel thread, zombie, no process: exit code 3 or 8, words",
    half=True,
)
def _refused(bench: Bench) -> None:
    with _refused_processes() as pids:
        for name, pid in pids.items():
            for line in (["record", "-d", "0.1"], ["doctor"]):
                if line[0] == "doctor" and bench.is_half:
                    continue
                codes = (2, 3, 8) if line[0] == "record" else (2, 3, 4, 5, 6, 8)
                before = len(bench.failures)
                _is_refused_well(bench, [*line, "-p", str(pid)], codes)
                for failed in bench.failures[before:]:
                    failed.seen = f"{name}: {failed.seen}"


@fault(
    "record_commands",
    "record -- COMMAND: missing, folder, not executable, empty, script without #!: shell's codes",
)
def _record_commands(bench: Bench) -> None:
    plain = bench.folder / "plain"
    plain.write_text("echo")
    broken = bench.folder / "broken"
    broken.write_text("#!/nonexistent/interpreter\n")
    broken.chmod(0o755)
    for command, codes in {
        ("/nonexistent",): (127,),
        (str(bench.folder),): (126,),
        (str(plain),): (126,),
        (str(broken),): (126, 127),
        ("",): (126, 127),
        ("/bin/true",): (0, 3),
        ("sh", "-c", "exit 9"): (3, 9),
        (SYSTEM_PYTHON, "-c", "import os; os._exit(9)"): (9,),
        (SYSTEM_PYTHON, "-c", "import os; [os.close(n) for n in (0, 1, 2)]; os._exit(4)"): (4,),
        (SYSTEM_PYTHON, "-c", "import os; os.kill(os.getpid(), 9)"): (137, -9),
    }.items():
        _is_refused_well(bench, ["record", "--", *command], codes)


@fault(
    "setuid_command",
    "record -- of a setuid program: it runs with its rights or is refused, in words",
)
def _setuid_command(bench: Bench) -> None:
    program = bench.folder / "python3.11"
    program.write_bytes(Path(SYSTEM_PYTHON).read_bytes())
    program.chmod(0o755 | stat.S_ISUID)
    _is_refused_well(bench, ["record", "--", str(program), "-c", "pass"], (0, 3, 5, 126))


@fault(
    "listen_addresses",
    "address taken, no address, port 65536, no UTF-8, too long: exit code 9 or 2",
    half=True,
)
def _listen_addresses(bench: Bench) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        addresses = [f"127.0.0.1:{port}", "203.0.113.7:0", "127.0.0.1:65536", "\udcff:0", "a" * 300]
        addresses += ["", ":", "127.0.0.1", "[::1", "::1:0", "host..name:0", "127.0.0.1:-1"]
        for turn in bench.times(5, len(addresses)):
            line = ["serve", "--stm-log", "/nothing", "--listen", addresses[turn]]
            _is_refused_well(bench, line, (2, 9))
