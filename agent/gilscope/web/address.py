"""Where to listen."""

__all__ = ["Address", "parse_address"]

Address = tuple[str, int]
"""Host and port; an empty host stands for all addresses."""

_LAST_PORT = 65535


def parse_address(text: str) -> Address:
    """Return host and port of ``HOST:PORT``, ``[V6]:PORT`` or ``:PORT``; raises ValueError."""
    host, colon, port = text.rpartition(":")
    if not colon or not port.isascii() or not port.isdigit() or int(port) > _LAST_PORT:
        raise ValueError(f"{text!r} is not HOST:PORT")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise ValueError(f"{text!r}: write an IPv6 address in brackets, [::1]:9845")
    return host, int(port)
