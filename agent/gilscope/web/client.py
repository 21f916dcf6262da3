"""Asks a running `serve`, as any client of it could."""

import base64
import ssl
import urllib.error
import urllib.request
from http import HTTPStatus
from http.client import HTTPException
from pathlib import Path

from gilscope.errors import NoAnswer
from gilscope.text.printable import printable
from gilscope.values import dataclass

__all__ = ["Credentials", "fetch"]

_TIMEOUT_S = 60
_MOST_WORDS = 300
"""Of an answer that says why there is no report."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """What a server may want to see, and what it has to show."""

    user: str = ""
    """Empty: it wants no password."""
    password: str = ""
    authority: Path | None = None
    """Certificates of who may vouch for the server, PEM; None: those that the system trusts."""
    certificate: Path | None = None
    """One's own, PEM."""
    key: Path | None = None
    """The key of that; None: it is in the same file."""


def fetch(url: str, credentials: Credentials) -> bytes:
    """Return what stands at *url*; raises NoAnswer."""
    try:
        opener = urllib.request.build_opener(
            # No proxy: what is asked runs on this host, or on one that is named.
            urllib.request.ProxyHandler({}),
            urllib.request.HTTPSHandler(context=_context(credentials)),
        )
        request = urllib.request.Request(url, headers=_headers(credentials))  # noqa: S310 - the scheme was checked
        with opener.open(request, timeout=_TIMEOUT_S) as answer:
            return bytes(answer.read())
    except urllib.error.HTTPError as error:
        words = error.read(_MOST_WORDS).decode(errors="replace").strip()
        raise NoAnswer(
            f"{printable(url)} answers {error.code}: {printable(words) or error.reason}",
            remedy=_remedy(error.code),
        ) from error
    except (OSError, HTTPException, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        raise NoAnswer(f"{printable(url)} does not answer: {printable(str(reason))}") from error


def _context(credentials: Credentials) -> ssl.SSLContext:
    context = ssl.create_default_context(
        cafile=None if credentials.authority is None else str(credentials.authority)
    )
    if credentials.certificate is not None:
        context.load_cert_chain(credentials.certificate, credentials.key)
    return context


def _headers(credentials: Credentials) -> dict[str, str]:
    if not credentials.user:
        return {}
    both = base64.b64encode(f"{credentials.user}:{credentials.password}".encode())
    return {"Authorization": f"Basic {both.decode()}"}


def _remedy(status: int) -> str:
    if status == HTTPStatus.UNAUTHORIZED:
        return "Name yourself with --user NAME and --password-file FILE."
    if status == HTTPStatus.SERVICE_UNAVAILABLE:
        return "Try again in a moment."
    return "It may be another version of gilscope, or another program."
