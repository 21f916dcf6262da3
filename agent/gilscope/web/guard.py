"""What a listener asks before it answers: who may connect, how, and who may read."""

import socket
from collections.abc import Mapping
from typing import Final, Protocol

__all__ = ["OPEN", "Busy", "Guard", "Rules"]


class Rules(Protocol):
    """What holds for one connection."""

    @property
    def headers(self) -> Mapping[str, str]:
        """Return what is to be sent with each answer."""

    def wrapped(self, connection: socket.socket) -> socket.socket:
        """Return what to talk through over *connection*, before any handshake; raises OSError.

        *connection* itself is not to be used any more.
        """

    def shake_hands(self, connection: socket.socket) -> None:
        """Agree with the other end; raises OSError, also where it may not connect."""

    def admits(self, authorization: str) -> bool:
        """Return whether who sends this header, empty for none, may read; raises Busy."""


class Guard(Protocol):
    """What holds now."""

    @property
    def scheme(self) -> str:
        """Return what addresses begin with: ``http`` or ``https``."""

    def rules(self) -> Rules:
        """Return what holds for a connection that has just been made."""


class _Open:
    """No encryption, and everybody may read."""

    scheme = "http"
    headers: Mapping[str, str] = {}

    def rules(self) -> "_Open":
        return self

    def wrapped(self, connection: socket.socket) -> socket.socket:
        return connection

    def shake_hands(self, connection: socket.socket) -> None:
        pass

    def admits(self, _authorization: str) -> bool:
        return True


OPEN: Final[Guard] = _Open()


class Busy(Exception):
    """Too many others are being checked; who asks again in a second may be told."""
