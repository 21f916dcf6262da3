"""Makes what connections are encrypted with, and checks the certificates of clients."""

import contextlib
import ipaddress
import os
import ssl
import threading
from collections.abc import Iterator
from dataclasses import field
from typing import Any

from gilscope.errors import InvalidWebConfig
from gilscope.values import dataclass
from gilscope.web.config.settings import ClientAuth, Pem, TlsSettings

__all__ = ["ClientRefused", "Contexts", "Tls", "load"]

_VERSIONS = {"TLS12": ssl.TLSVersion.TLSv1_2, "TLS13": ssl.TLSVersion.TLSv1_3}
_VERIFY = {
    ClientAuth.NONE: ssl.CERT_NONE,
    ClientAuth.IF_GIVEN: ssl.CERT_OPTIONAL,
    ClientAuth.REQUIRED: ssl.CERT_REQUIRED,
}
_MOST_USES = 64
"""Of one context. To make it takes 2 ms."""
_MOST_BYTES = 1 << 20
"""Of a file. Certificates take a few thousand."""


class ClientRefused(OSError):
    """A client's certificate is valid, and names nobody who is allowed."""


@dataclass(frozen=True, slots=True)
class Tls:
    """The settings with the content of the files that they name."""

    settings: TlsSettings
    pair: bytes = field(repr=False)
    """Certificate, those that lead from it to its authority, and key."""
    client_ca: str = ""

    def context(self) -> ssl.SSLContext:
        """Return a new context; raises ssl.SSLError and ValueError."""
        settings = self.settings
        made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        made.minimum_version = _VERSIONS[settings.min_version]
        made.maximum_version = _VERSIONS[settings.max_version]
        made.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_TICKET
        made.num_tickets = 0
        if not settings.prefers_own_ciphers:
            made.options &= ~ssl.OP_CIPHER_SERVER_PREFERENCE
        if settings.ciphers:
            made.set_ciphers(":".join(settings.ciphers))
        if settings.curve:
            made.set_ecdh_curve(settings.curve)
        if self.client_ca:
            made.load_verify_locations(cadata=self.client_ca)
        made.verify_mode = _VERIFY[settings.client_auth]
        with _as_file(self.pair) as path:
            made.load_cert_chain(path, password=_no_password)
        return made

    def check(self, certificate: dict[str, Any] | None) -> None:
        """Raise ClientRefused unless a client with this *certificate* is allowed."""
        allowed = set(map(_plain, self.settings.allowed_sans))
        names = {_plain(str(name)) for _, name in (certificate or {}).get("subjectAltName", ())}
        if allowed and not allowed & names:
            raise ClientRefused(f"{', '.join(sorted(names)) or 'no name'} is not allowed")


class Contexts:
    """Has a context for each connection. Its methods may be called by several threads."""

    def __init__(self, tls: Tls) -> None:
        self._tls = tls
        self._uses = 0
        self._turn = threading.Lock()
        self._context = tls.context()

    def next(self) -> ssl.SSLContext:
        """Return the context for another connection."""
        with self._turn:
            self._uses += 1
            # It keeps the sessions of clients, up to 20480 of them, which none comes back for.
            if self._uses % _MOST_USES == 0:
                self._context = self._tls.context()
            return self._context


def load(settings: TlsSettings) -> Tls:
    """Read the files that *settings* name and try what is in them; raises InvalidWebConfig."""
    cert, key = _content(settings.cert), _content(settings.key)
    client_ca = b"" if settings.client_ca is None else _content(settings.client_ca)
    tls = Tls(settings, b"\n".join((cert, key)), client_ca.decode("ascii", "replace"))
    try:
        tls.context()
    except (ssl.SSLError, ValueError) as error:
        raise InvalidWebConfig(_what_is_wrong(settings, cert, key, client_ca, error)) from error
    return tls


def _content(pem: Pem) -> bytes:
    if not pem.path:
        return pem.text.encode()
    try:
        with open(pem.path, "rb") as file:  # noqa: PTH123 - a path is a text here
            return file.read(_MOST_BYTES)
    except OSError as error:
        raise InvalidWebConfig(f"{pem.option}: cannot read {pem.path}: {error.strerror}") from error


def _what_is_wrong(
    settings: TlsSettings, cert: bytes, key: bytes, client_ca: bytes, error: Exception
) -> str:
    # OpenSSL's own words are about its insides: the likely causes are looked for first.
    reason = getattr(error, "reason", None) or str(error)
    for pem, content, mark, what in (
        (settings.cert, cert, b"BEGIN CERTIFICATE", "certificate"),
        (settings.key, key, b"PRIVATE KEY", "private key"),
        (settings.client_ca, client_ca, b"BEGIN CERTIFICATE", "certificate"),
    ):
        if pem is not None and mark not in content:
            return f"{_place(pem)} holds no {what} in the PEM format"
    if isinstance(error, _EncryptedKey):
        return f"{_place(settings.key)} is encrypted; a key without a password is needed"
    if reason == "KEY_VALUES_MISMATCH":
        return f"{_place(settings.key)} is not the key of {_place(settings.cert)}"
    return f"{_place(settings.cert)} and what belongs to it cannot be used: {reason}"


def _place(pem: Pem) -> str:
    return f"{pem.option} ({pem.path})" if pem.path else pem.option


class _EncryptedKey(ValueError):
    """A key that needs a password."""


def _no_password() -> str:
    # Otherwise OpenSSL would ask for it at the terminal.
    raise _EncryptedKey


@contextlib.contextmanager
def _as_file(content: bytes) -> Iterator[str]:
    """Yield a path under which *content* can be read, which is on no disk."""
    number = os.memfd_create("gilscope-tls")
    try:
        with open(number, "wb", closefd=False) as file:
            file.write(content)
        yield f"/proc/self/fd/{number}"
    finally:
        os.close(number)


def _plain(name: str) -> str:
    """Return *name* as it is compared: addresses have several forms."""
    try:
        return str(ipaddress.ip_address(name.strip()))
    except ValueError:
        return name
