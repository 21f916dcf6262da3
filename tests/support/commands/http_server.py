"""Starts a program that serves HTTP and says at one of its pages that it does."""

import http.client
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from support.commands.gilscope import eventually
from support.ports import free_port

__all__ = ["HOST", "answer", "free_address", "ready_server"]

HOST = "127.0.0.1"
_PATIENCE_S = 45.0


def free_address() -> str:
    """Return a port of the loopback that nobody has, behind its host."""
    return f"{HOST}:{free_port()}"


@contextmanager
def ready_server(
    command: Sequence[str], address: str, log: Path, page: str = "/-/ready"
) -> Iterator[None]:
    """Have *command* serve at *address* until the block has ended; what it says goes to *log*.

    It is ready as soon as it answers with *page*.
    """
    with (
        log.open("w") as said,
        subprocess.Popen(command, stdout=said, stderr=said) as process,
    ):

        def is_ready() -> bool:
            assert process.poll() is None, log.read_text()
            return _answers(address, page)

        try:
            eventually(is_ready, within_s=_PATIENCE_S)
            yield
            process.terminate()
            process.wait(_PATIENCE_S)
        finally:
            process.kill()


def answer(address: str, path: str) -> tuple[int, str]:
    """Return the status and the text of the page at *path*."""
    connection = http.client.HTTPConnection(address, timeout=_PATIENCE_S)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()


def _answers(address: str, path: str) -> bool:
    try:
        return 200 == answer(address, path)[0]
    except ConnectionError:
        return False
