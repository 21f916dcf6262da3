"""Who may connect and who may read, as a web configuration file says at the moment."""

import contextlib
import logging
import os
import socket
import ssl
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import cast

from gilscope.errors import InvalidWebConfig
from gilscope.values import dataclass
from gilscope.web.config.parse import parse
from gilscope.web.config.passwords import Passwords
from gilscope.web.config.settings import WebSettings
from gilscope.web.config.tls import Contexts, Tls, load

__all__ = ["Access", "FileRules"]

_log = logging.getLogger(__name__)

_HANDSHAKE = b"\x16"
"""What TLS begins with."""
_WRONG_SCHEME = (
    b"HTTP/1.0 400 Bad Request\r\nContent-Type: text/plain\r\n\r\n"
    b"This port speaks HTTPS. Ask again with https:// in front.\n"
)

_Mark = tuple[int, ...]
"""Tells one state of a file from every other."""


@dataclass(frozen=True, slots=True)
class FileRules:
    """What one state of the files says."""

    settings: WebSettings
    tls: Tls | None
    contexts: Contexts | None
    passwords: Passwords | None

    @property
    def headers(self) -> Mapping[str, str]:
        """Return what is to be sent with each answer."""
        return self.settings.headers

    def wrapped(self, connection: socket.socket) -> socket.socket:
        """Return what to talk through over *connection*; raises OSError."""
        if self.contexts is None:
            return connection
        first = connection.recv(1, socket.MSG_PEEK)
        if first and first != _HANDSHAKE:
            connection.sendall(_WRONG_SCHEME)
            raise ConnectionRefusedError("a client did not speak TLS")
        return self.contexts.next().wrap_socket(
            connection, server_side=True, do_handshake_on_connect=False
        )

    def shake_hands(self, connection: socket.socket) -> None:
        """Agree with the other end; raises OSError, also where it may not connect."""
        if self.tls is not None:
            encrypted = cast(ssl.SSLSocket, connection)
            encrypted.do_handshake()
            self.tls.check(encrypted.getpeercert())

    def admits(self, authorization: str) -> bool:
        """Return whether who sends this header may read; raises Busy."""
        return self.passwords is None or self.passwords.admits(authorization)


class Access:
    """Reads the file again when it has changed, and so what it names."""

    def __init__(self, path: str) -> None:
        """Read the file *path*; raises InvalidWebConfig."""
        self._path = path
        self._marks: dict[str, _Mark] = {}
        """Of the files that were read last."""
        self._turn = threading.Lock()
        self._rules = self._load(None)

    @property
    def scheme(self) -> str:
        """Return what addresses begin with."""
        return "http" if self._rules.tls is None else "https"

    def rules(self) -> FileRules:
        """Return what holds now.

        Where the files have become invalid, what they said before stays in effect.
        """
        with self._turn:
            if any(_mark(path) != mark for path, mark in self._marks.items()):
                self._reload()
            return self._rules

    def _reload(self) -> None:
        try:
            fresh = self._load(self._rules)
        except InvalidWebConfig as error:
            _log.warning("%s. The previous settings stay in effect.", error)
            return
        # A file that is being written may be half empty, and nobody is to be let in meanwhile.
        if fresh.settings.protection != self._rules.settings.protection:
            _log.warning(
                "%s: tls_server_config, client_auth_type and basic_auth_users cannot be added or "
                "taken away while gilscope runs. The previous settings stay in effect.",
                self._path,
            )
            return
        self._rules = fresh
        _log.info("%s or a file that it names has changed, and holds from now on", self._path)

    def _load(self, before: FileRules | None) -> FileRules:
        # A mark is taken before its file is read: what changes meanwhile is read again.
        self._marks = {self._path: _mark(self._path)}
        settings = parse(_read(self._path), self._path)
        tls = settings.tls
        for pem in () if tls is None else (tls.cert, tls.key, tls.client_ca):
            if pem is not None and pem.path:
                self._marks[pem.path] = _mark(pem.path)
        try:
            loaded = None if tls is None else load(tls)
        except InvalidWebConfig as error:
            raise InvalidWebConfig(f"{self._path}: tls_server_config.{error}") from error
        contexts = None if loaded is None else Contexts(loaded)
        if before is not None and before.settings.users == settings.users:
            passwords = before.passwords  # which know already whom they let in
        else:
            passwords = Passwords(settings.users) if settings.users else None
        return FileRules(settings, loaded, contexts, passwords)


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise InvalidWebConfig(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InvalidWebConfig(f"{path} is no UTF-8: {error.reason}") from error


def _mark(path: str) -> _Mark:
    with contextlib.suppress(OSError):
        status = os.stat(path)  # noqa: PTH116 - a path is a text here
        return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
    return ()
