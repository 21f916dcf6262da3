"""Ports for servers that do not take port 0 and tell which one they got."""

import socket

__all__ = ["free_port"]


def free_port() -> int:
    """Return a port of the loopback that nobody has."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
        return port
