"""Asks the server of docs/convoy.md for prices, and prints how long the answers took.

Takes the server's port. Asks again two milliseconds after each answer, until killed.
"""
# ruff: noqa: INP001, T201 - a script that talks to its user

import socket
import sys
import time

_ANSWERS_A_LINE = 500
_PAUSE_S = 0.002


def ask(client: socket.socket) -> float:
    """Return how long one answer took, in milliseconds."""
    began_s = time.monotonic()
    client.send(b"?")
    client.recv(64)
    return (time.monotonic() - began_s) * 1000


def main() -> None:
    """Ask, and print the median and the 99th percentile of the times now and then."""
    client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    client.connect(("127.0.0.1", int(sys.argv[1])))
    while True:
        times_ms = []
        for _ in range(_ANSWERS_A_LINE):
            times_ms.append(ask(client))
            time.sleep(_PAUSE_S)
        times_ms.sort()
        median, slow = (times_ms[_ANSWERS_A_LINE * share // 100] for share in (50, 99))
        print(f"half of the answers within {median:.2f} ms, 99 % within {slow:.2f} ms", flush=True)


if __name__ == "__main__":
    main()
