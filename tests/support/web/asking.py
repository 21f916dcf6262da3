"""Asks an agent as users do, with curl."""

import subprocess
from dataclasses import dataclass
from pathlib import Path

from support.certificates import Authority

__all__ = ["TLS", "Answered", "ask", "known"]

TLS = """\
tls_server_config:
  cert_file: authority-server.crt
  key_file: authority-server.key
"""

_REFUSED_BY_PEER = (35, 56)
"""How curl ends: before TLS 1.3 the handshake fails, since then the first read."""


@dataclass(frozen=True, slots=True)
class Answered:
    """What curl found."""

    exit_code: int
    text: str
    """Headers and body."""
    complaint: str

    @property
    def status(self) -> int:
        """The code of HTTP; 0: there was no answer."""
        return int(self.text.split()[1]) if self.text else 0

    @property
    def is_refused(self) -> bool:
        """Whether the server would not talk to this client."""
        return self.exit_code in _REFUSED_BY_PEER and not self.text


def ask(url: str, *options: str, path: str = "metrics") -> Answered:
    """Return what the agent at *url* answers to curl with *options*."""
    done = subprocess.run(
        ["curl", "--silent", "--show-error", "--include", "--max-time", "20", *options, url + path],
        capture_output=True,
        text=True,
        check=False,
    )
    return Answered(done.returncode, done.stdout, done.stderr)


def known(authority: Authority, client: str = "") -> tuple[str, ...]:
    """Return options that trust *authority*, and show the certificate called *client*."""
    options = ("--cacert", str(authority.cert))
    if not client:
        return options
    pair = Path(authority.folder, client)
    return (*options, "--cert", f"{pair}.crt", "--key", f"{pair}.key")
