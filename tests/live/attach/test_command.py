"""What a command gets from gilscope besides being traced: nothing."""

import json
from pathlib import Path

import pytest

from support.commands.gilscope import eventually, gilscope, gilscope_started
from support.commands.serve import serving

pytestmark = [pytest.mark.live, pytest.mark.beside_others]

_PYTHON = "/usr/bin/python3"

_SLOW_CLEANUP = """
import sys, time
try:
    print("ready", flush=True)
    while True:
        sum(range(20000))
except KeyboardInterrupt:
    until = time.monotonic() + 1.5
    while time.monotonic() < until:
        sum(range(20000))
    print("cleaned up", flush=True)
    sys.exit(5)
"""


def test_command_inherits_no_descriptor() -> None:
    """
    Maps and programs of the probes stay gilscope's own, also if it is killed.
    """
    listing = "import json, os; print(json.dumps(sorted(os.listdir('/proc/self/fd'))))"
    outcome = gilscope("record", "-o", "/dev/null", "--", _PYTHON, "-c", listing)

    # The fourth is the one that lists them.
    assert ["0", "1", "2", "3"] == json.loads(outcome.output)


def test_ctrl_c_lets_the_command_clean_up() -> None:
    """
    A command that takes its time after Ctrl-C is given it, and ends with its own exit code.
    """
    with gilscope_started("record", "--", _PYTHON, "-c", _SLOW_CLEANUP) as command:
        eventually(lambda: "ready" in command.output)
        command.interrupt()
        outcome = command.outcome()

    assert 5 == outcome.exit_code
    assert "cleaned up" in outcome.output
    assert "python -c, pid " in outcome.output


def test_name_that_is_no_text_is_escaped(tmp_path: Path) -> None:
    """
    A script whose name is not UTF-8 is recorded and served like any other.
    """
    script = tmp_path / "caf\udce9.py"
    script.write_text("import sys; print('ready', flush=True); sys.stdin.read()\n")
    outcome = gilscope("record", "--", _PYTHON, str(script))
    with gilscope_started("record", "--", _PYTHON, str(script)) as command:
        eventually(lambda: "ready" in command.output)
        pid = int(command.messages.partition(", pid ")[2].split()[0])
        with serving("-p", str(pid)) as service:
            scrape = service.scrape()
        command.outcome()

    assert 0 == outcome.exit_code
    assert "caf\\udce9.py, pid " in outcome.output
    assert 1 == scrape.total("gilscope_probe_valid", process="caf\\udce9.py")
