"""A server of quotes whose prices a thread beside it computes: docs/convoy.md, not fixed.

Answers each datagram with the newest price, on a port of loopback that it prints.
"""
# ruff: noqa: INP001, T201 - a script that talks to its user

import itertools
import socket
import threading

_prices = {"newest": 0}


def compute_price(day: int) -> int:
    """Return a price that takes a while to find."""
    best = 0
    for offer in range(300_000):
        best = max(best, offer * day % 9973)
    return best


def refresh_prices() -> None:
    """Compute one price after the other."""
    for day in itertools.count(1):
        _prices["newest"] = compute_price(day)


def answer(server: socket.socket) -> None:
    """Send the newest price to whoever asks."""
    while True:
        _, client = server.recvfrom(64)
        server.sendto(b"%d" % _prices["newest"], client)


def main() -> None:
    """Serve until killed."""
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind(("127.0.0.1", 0))
    print(server.getsockname()[1], flush=True)
    threading.Thread(target=refresh_prices, daemon=True).start()
    threading.Thread(target=answer, args=(server,), daemon=True).start()
    threading.Event().wait()


if __name__ == "__main__":
    main()
