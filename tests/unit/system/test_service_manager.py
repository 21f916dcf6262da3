"""What the service manager is told."""

import os
import socket
from pathlib import Path

import pytest

from gilscope.system.service_manager import ServiceManager


@pytest.mark.parametrize("is_abstract", [False, True])
def test_states_go_to_the_socket(tmp_path: Path, *, is_abstract: bool) -> None:
    """
    At a path, or at an abstract one; nothing is left to children. All is well three times in it.
    """
    address = f"@gilscope-test-{os.getpid()}" if is_abstract else str(tmp_path / "notify")
    environment = {
        "NOTIFY_SOCKET": address,
        "WATCHDOG_PID": str(os.getpid()),
        "WATCHDOG_USEC": "20000000",
        "HOME": "/root",
    }
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind("\0" + address[1:] if is_abstract else address)
        manager = ServiceManager(environment)
        manager.ready()
        for _ in range(5):
            manager.alive()
        manager.stopping()
        heard = [listening.recv(100) for _ in range(3)]

    assert [b"READY=1", b"WATCHDOG=1", b"STOPPING=1"] == heard
    assert {"HOME": "/root"} == environment


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"NOTIFY_SOCKET": "/nowhere/notify"},
        {"NOTIFY_SOCKET": "@gilscope-nobody", "WATCHDOG_USEC": "x"},
        {"WATCHDOG_USEC": "1000000", "WATCHDOG_PID": "1"},
    ],
)
def test_nobody_who_listens_is_no_failure(environment: dict[str, str]) -> None:
    """
    Without a manager, with one that has gone, and where the watchdog is another process'.
    """
    manager = ServiceManager(environment)
    manager.ready()
    manager.alive()
    manager.stopping()
