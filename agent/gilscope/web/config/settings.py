"""The values of a web configuration file, and what may be written in one.

The format is that of Prometheus' exporter toolkit. What of it cannot be done here is refused, so
that nobody believes to be protected by a line that has no effect.
"""

from collections.abc import Mapping
from dataclasses import field
from enum import Enum

from gilscope.values import dataclass

__all__ = [
    "CIPHERS",
    "CURVES",
    "HEADERS",
    "ClientAuth",
    "Pem",
    "TlsSettings",
    "WebSettings",
]


class ClientAuth(Enum):
    """Whether clients must show a certificate; those values of the format that can be had."""

    NONE = "NoClientCert"
    IF_GIVEN = "VerifyClientCertIfGiven"
    REQUIRED = "RequireAndVerifyClientCert"


@dataclass(frozen=True, slots=True)
class Pem:
    """A certificate or a key, or where to read it."""

    option: str
    """What it is called in the file, for messages."""
    text: str = field(default="", repr=False)
    path: str = ""
    """As it is to be opened; empty: it is *text*."""


@dataclass(frozen=True, slots=True)
class TlsSettings:
    """How connections are encrypted, and which clients may make one."""

    cert: Pem
    key: Pem
    client_ca: Pem | None = None
    client_auth: ClientAuth = ClientAuth.NONE
    allowed_sans: tuple[str, ...] = ()
    """A client's certificate must name one of them; empty: any name will do."""
    min_version: str = "TLS12"
    max_version: str = "TLS13"
    ciphers: tuple[str, ...] = ()
    """For TLS 1.2, as OpenSSL names them; empty: its own choice."""
    prefers_own_ciphers: bool = True
    curve: str = ""
    """As OpenSSL names it; empty: its own choice."""


@dataclass(frozen=True, slots=True)
class WebSettings:
    """What one file says."""

    tls: TlsSettings | None = None
    """None: connections are not encrypted."""
    users: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Hashes of bcrypt by user name; empty: nobody is asked for a password."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """To be sent with each answer."""

    @property
    def protection(self) -> tuple[bool, ClientAuth | None, bool]:
        """Return what keeps others out, so that a change of it can be noticed."""
        auth = None if self.tls is None else self.tls.client_auth
        return self.tls is not None, auth, bool(self.users)


CIPHERS = {
    f"TLS_ECDHE_{kind}_WITH_{ours}": f"ECDHE-{kind}-{theirs}"
    for kind in ("ECDSA", "RSA")
    for ours, theirs in (
        ("AES_128_CBC_SHA", "AES128-SHA"),
        ("AES_256_CBC_SHA", "AES256-SHA"),
        ("AES_128_GCM_SHA256", "AES128-GCM-SHA256"),
        ("AES_256_GCM_SHA384", "AES256-GCM-SHA384"),
        ("CHACHA20_POLY1305_SHA256", "CHACHA20-POLY1305"),
    )
}
"""The suites of TLS 1.2 that the format knows, and how OpenSSL calls them."""

CURVES = {"CurveP256": "prime256v1", "CurveP384": "secp384r1", "CurveP521": "secp521r1"}
"""Likewise. The fourth, X25519, cannot be chosen through Python's ssl before 3.15."""

HEADERS: Mapping[str, tuple[str, ...]] = {
    "Content-Security-Policy": (),
    "Strict-Transport-Security": (),
    "X-Content-Type-Options": ("nosniff",),
    "X-Frame-Options": ("deny", "sameorigin"),
    "X-XSS-Protection": (),
}
"""Those that may be set, each with the values that it may have; none: any."""
