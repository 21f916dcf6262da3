"""Free-threaded builds: traced while they have a GIL, and told so where they do without it."""

import subprocess
from pathlib import Path

import pytest

from accuracy.truth import started
from gilscope.discovery import scanner
from gilscope.discovery.scanner import Scanner
from gilscope.gil.tracing.account import GilAccount
from gilscope.tracing.tracer import Tracer
from support.commands.gilscope import gilscope
from support.interpreters.known import FREE_THREADED, WITH_GIL_ON, Interpreter
from support.paths import ROOT
from support.tracing.observations import assert_counts_exactly
from support.tracing.trace import command_of

pytestmark = pytest.mark.live

_MODULE = ROOT / "tests" / "support" / "interpreters" / "needs_gil.c"
# A module that does not say that it needs no GIL switches it on, with a warning.
_SWITCHES_LATE = """\
import sys, warnings
warnings.simplefilter("ignore")
sys.path.insert(0, sys.argv[1])
for line in ("waits", "has imported it"):
    sys.stdout.write(line + "\\n")
    sys.stdout.flush()
    sys.stdin.readline()
    import needs_gil
"""


@pytest.mark.parametrize("interpreter", WITH_GIL_ON)
def test_gil_that_is_on_is_traced_as_any_other(
    interpreter: Interpreter, tracer: GilAccount
) -> None:
    """
    A thread that waits 23 times is reported exactly so, by the call sites.
    """
    with started(command_of(interpreter), "exact_count.py") as workload:
        target = tracer.attach(workload.pid)
        assert_counts_exactly(tracer, workload)
        workload.finish()

    assert ("sites", "t") == (target.process.method, target.process.python[-1])


@pytest.mark.parametrize("interpreter", FREE_THREADED)
def test_gil_that_is_switched_on_later_is_traced_from_then_on(
    interpreter: Interpreter,
    tracer: GilAccount,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """
    Until then the process is refused, with the reason and with what to do.
    """
    monkeypatch.setattr(scanner, "_SWITCHED_S", 0.0)
    library = tmp_path / "needs_gil.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, _MODULE], check=True)
    command = [*command_of(interpreter), "-c", _SWITCHES_LATE, str(tmp_path)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.readline()
        scan = Scanner(Tracer(tracer), lambda pid, _: pid == process.pid, [process.pid])
        scan.scan()
        (refusal,) = scan.refusals()
        before = tracer.pids
        process.stdin.write("\n")
        process.stdin.flush()
        process.stdout.readline()
        scan.scan()
        after = tracer.pids
        process.kill()

    assert "runs without a GIL" in refusal.reason
    assert "PYTHON_GIL=1" in refusal.remedy
    assert ((), (process.pid,)) == (before, after)
    assert [] == scan.refusals()


@pytest.mark.parametrize("interpreter", FREE_THREADED[:1])
def test_python_without_a_gil_is_refused(interpreter: Interpreter) -> None:
    """
    It gives exit code 7 and not zero waits; doctor says that its locks can be traced.
    """
    with subprocess.Popen(
        [*command_of(interpreter), "-c", "print(1, flush=True); input()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        outcome = gilscope("record", "-p", str(process.pid))
        diagnosis = gilscope("doctor", "-p", str(process.pid))
        process.kill()

    assert (7, "") == (outcome.exit_code, outcome.output)
    error, remedy = outcome.messages.splitlines()
    assert f"error: process {process.pid} runs without a GIL" in error
    assert "PYTHON_GIL=1" in remedy
    assert 7 == diagnosis.exit_code
    assert diagnosis.output.splitlines()[-1] == (
        f"Process {process.pid} has no GIL to trace, but its locks can be traced: "
        f"gilscope record --locks -p {process.pid}"
    )
