"""The unit in deploy/systemd, started by a real systemd with everything that it sets."""

import http.client
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from gilscope.process.procfs import read_status
from support.commands.gilscope import eventually
from support.commands.systemd import CHECKOUT, systemd
from support.paths import ROOT
from support.ports import free_port

pytestmark = [pytest.mark.live, pytest.mark.beside_others]

_UNIT = ROOT / "deploy" / "systemd" / "gilscope.service"
_ADDRESS = "127.0.0.1:9845"
_TARGET = f"""\
[Unit]
DefaultDependencies=no
[Service]
User=nobody
ExecStart=/usr/bin/python3 {CHECKOUT}/tests/workloads/convoy.py
"""
_RIGHTS = 1 << 2 | 1 << 19 | 1 << 38 | 1 << 39
"""CAP_DAC_READ_SEARCH, CAP_SYS_PTRACE, CAP_PERFMON and CAP_BPF."""
_STRICT = 2
"""What /proc/PID/status says of a process with a filter of system calls."""


def _page(port: int, path: str) -> str:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request("GET", path)
        return connection.getresponse().read().decode()
    except ConnectionError:
        return ""
    finally:
        connection.close()


def _agent(port: int) -> int:
    """Return the pid of the agent that listens on *port*, as this process sees it."""
    words = f"127.0.0.1:{port}".encode()
    (pid,) = [
        int(path.parent.name)
        for path in Path("/proc").glob("[0-9]*/cmdline")
        if words in path.read_bytes().split(b"\0")
    ]
    return pid


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    """Where an agent answers that systemd has started, beside a server of another user."""
    number = free_port()
    text = _UNIT.read_text()
    assert _ADDRESS in text
    text = text.replace(_ADDRESS, f"127.0.0.1:{number}")
    # The target of a whole machine is not there.
    text = re.sub("(?m)^After=.*", "DefaultDependencies=no", text)
    with systemd({"gilscope.service": text, "server.service": _TARGET}):
        eventually(lambda: "gilscope_build_info" in _page(number, "/metrics"))
        yield number


def test_processes_of_other_users_are_traced(port: int) -> None:
    """
    A server of nobody's, with the waits of its threads.
    """

    def waiting() -> set[tuple[str, str]]:
        return {
            (sample.labels["process"], sample.labels["role"].partition(" ")[0])
            for family in text_string_to_metric_families(_page(port, "/metrics"))
            for sample in family.samples
            if sample.name == "gilscope_gil_thread_waits_total" and sample.value
        }

    assert {("convoy.py", "crunch")} == eventually(waiting)


def test_agent_has_no_other_rights(port: int) -> None:
    """
    Root, with four capabilities, a filter of system calls, and no way to more.
    """
    pid = _agent(port)
    status = Path(f"/proc/{pid}/status").read_text()

    assert _RIGHTS == read_status(pid).effective_capabilities
    assert _STRICT == read_status(pid).seccomp
    assert "NoNewPrivs:\t1" in status
    assert "Uid:\t0\t" in status


def test_cache_is_used(port: int) -> None:
    """
    The folder that systemd makes for it is safe enough to keep programs in.
    """
    cache = Path(f"/proc/{_agent(port)}/root/var/cache/gilscope")

    assert [] != list(cache.iterdir())
