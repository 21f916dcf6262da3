"""Which names of the server a request may use: a defence against DNS rebinding."""

import ipaddress

__all__ = ["is_own_name", "listens_on_loopback"]

_LOCALHOST = "localhost"


def listens_on_loopback(host: str) -> bool:
    """Return whether only programs of this machine reach *host*, as ``--listen`` names it."""
    return _is_loopback(host)


def is_own_name(header: str | None, listened: str) -> bool:
    """Return whether a request with this ``Host`` is meant for a server on loopback.

    *listened* is the host that the server listens on. A page of another site can give its own name
    the address of the loopback and have a browser ask here; the browser then says that name.
    """
    if header is None:
        return True  # no browser leaves it out
    host = _without_port(header.strip()).lower()
    return host == listened.lower() or _is_loopback(host)


def _without_port(text: str) -> str:
    if text.startswith("["):
        return text[1:].partition("]")[0]
    return text.partition(":")[0]


def _is_loopback(host: str) -> bool:
    name = host.rstrip(".").lower()
    if name == _LOCALHOST or name.endswith(f".{_LOCALHOST}"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
