"""Clients that keep a server of real requests busy."""

import contextlib
import http.client
import threading
from collections.abc import Iterator

__all__ = ["busy_clients", "is_answered"]

_CLIENTS = 6
_TIMEOUT_S = 30.0


@contextlib.contextmanager
def busy_clients(port: int) -> Iterator[None]:
    """Ask the server at *port* of the loopback for its page, again and again, until the block ends.

    Raises ConnectionError where it has answered none of them.
    """
    stop, answers = threading.Event(), [0] * _CLIENTS

    def ask(number: int) -> None:
        while not stop.is_set():
            answers[number] += is_answered(port)

    clients = [threading.Thread(target=ask, args=(number,)) for number in range(_CLIENTS)]
    for client in clients:
        client.start()
    try:
        yield
    finally:
        stop.set()
        for client in clients:
            client.join()
    if not sum(answers):
        raise ConnectionError(f"the server at port {port} has answered no client")


def is_answered(port: int) -> bool:
    """Return whether the server at *port* gives its page."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_TIMEOUT_S)
    try:
        connection.request("GET", "/")
        answer = connection.getresponse()
        answer.read()
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
    return answer.status == http.HTTPStatus.OK
