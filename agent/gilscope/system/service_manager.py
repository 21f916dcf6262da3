"""Tells the service manager that started gilscope of its state: sd_notify(3) of systemd."""

import contextlib
import os
import socket
import time
from collections.abc import MutableMapping

__all__ = ["ServiceManager"]

_US_PER_S = 1_000_000
_SAID_WITHIN = 1 / 3
"""Of the watchdog's time: one word that is lost, or late, is no alarm."""


class ServiceManager:
    """Who started this process, if it wants to be told anything."""

    def __init__(self, environment: MutableMapping[str, str]) -> None:
        """Take from *environment* what is meant for this process, and leave it to no child."""
        self._address = environment.pop("NOTIFY_SOCKET", "")
        is_meant = environment.pop("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
        timeout_us = environment.pop("WATCHDOG_USEC", "")
        is_watched = is_meant and timeout_us.isascii() and timeout_us.isdigit()
        self._watchdog_s = int(timeout_us) / _US_PER_S if is_watched else None
        """Within this time it wants to hear that gilscope is alive; None: it does not."""
        self._alive_due_s = 0.0

    def ready(self) -> None:
        """Say that what gilscope is for has begun."""
        self._tell("READY=1")

    def alive(self) -> None:
        """Say that all is well, if that has not been said of late.

        To be called about once a second.
        """
        now_s = time.monotonic()
        if self._watchdog_s is not None and now_s >= self._alive_due_s:
            self._alive_due_s = now_s + self._watchdog_s * _SAID_WITHIN
            self._tell("WATCHDOG=1")

    def stopping(self) -> None:
        """Say that the end has begun."""
        self._tell("STOPPING=1")

    def _tell(self, state: str) -> None:
        if not self._address:
            return
        # An @ stands for the first byte of an abstract address, which is 0.
        address = "\0" + self._address[1:] if self._address.startswith("@") else self._address
        # A manager that has gone, or does not read, is not waited for: it decides by itself.
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
            sock.settimeout(0)
            sock.connect(address)
            sock.send(state.encode())
