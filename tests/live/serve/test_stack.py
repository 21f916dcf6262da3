"""``make stack``: the program of the demonstration, watched until an alert fires."""

import re
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from support.commands.gilscope import environment
from support.commands.http_server import answer
from support.paths import ROOT
from support.prometheus.rules import rules
from support.prometheus.server import Prometheus
from support.prometheus.tools import alertmanager_command, prometheus_tool

pytestmark = pytest.mark.live


@pytest.fixture
def stack() -> Iterator["subprocess.Popen[str]"]:
    """Start what `make stack` starts; it has ended when the test has."""
    alertmanager_command()
    prometheus_tool("prometheus")
    command = [sys.executable, str(ROOT / "deploy" / "stack.py")]
    with subprocess.Popen(command, stderr=subprocess.PIPE, env=environment(), text=True) as process:
        try:
            yield process
        finally:
            # By a signal that it can heed: it has to end whatever it has started.
            process.send_signal(signal.SIGINT)
            process.wait(30)


def _until(stack: "subprocess.Popen[str]", words: str) -> str:
    """Return what is said up to the line with *words*; fails where it is never said."""
    assert stack.stderr is not None
    said = ""
    for line in stack.stderr:
        said += line
        if words in line:
            return said
    pytest.fail(f"ended without {words!r}: {said}")


def test_alert_of_the_demonstration_fires(stack: "subprocess.Popen[str]") -> None:
    """
    It says where everything is, and which alerts Alertmanager has; a signal ends all of it.
    """
    pages = re.findall(r"http://(127\.0\.0\.1:\d+)(/\S*)", _until(stack, "Alertmanager is"))
    gilscope, prometheus, alertmanager = addresses = [address for address, _ in pages]
    said = _until(stack, "Alert: GilscopeGilConvoy") + _until(stack, "What to do: ")

    loaded = [rule["name"] for rule in Prometheus(f"http://{prometheus}").rules()]
    assert sorted(rule.name for rule in rules()) == sorted(loaded)
    assert "convoy.py" in answer(gilscope, "/")[1]
    assert "GilscopeGilConvoy" in answer(alertmanager, "/api/v2/alerts")[1]
    assert [200] * 3 == [answer(address, path)[0] for address, path in pages]
    assert re.search(r"convoy\.py \(at \S+\): [\d.]+ times a second", said)
    assert re.search(r"of that the holder is in crunch \(convoy\.py:\d+\)", said)
    assert "docs/runbooks/gil-convoy.md" in said

    stack.send_signal(signal.SIGINT)
    assert 0 == stack.wait(30)
    for address in addresses:
        with pytest.raises(ConnectionError):
            answer(address, "/")
