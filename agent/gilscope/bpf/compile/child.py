"""Runs ``bcc_child``, in a process of its own."""

import contextlib
import json
import os
import socket
import subprocess
from typing import Any

from gilscope.bpf.compile.headers import find_headers
from gilscope.bpf.compile.object_cache import COMPILER
from gilscope.errors import KernelOrBccMissing

__all__ = ["Child"]

_MAX_ANSWER = 1 << 20
_MAX_DESCRIPTORS = 128
_TIMEOUT_S = 120


class Child:
    """One run of ``bcc_child`` by one Python."""

    def __init__(self, python: str, message: str) -> None:
        """Have *python* begin to work on *message*, the request of ``bcc_child``."""
        self._ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._ours.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _MAX_ANSWER)
            theirs.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _MAX_ANSWER)
            # -I: nothing of the caller's directory or PYTHONPATH may pose as BCC.
            self._process = subprocess.Popen(
                [python, "-I", str(COMPILER), str(theirs.fileno())],
                stdin=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=[theirs.fileno()],
                env=_environment(),
                encoding="utf-8",
                errors="backslashreplace",
                # Ctrl-C is for gilscope; the compiler ends when nobody wants its answer.
                start_new_session=True,
            )
        self._begin(message)

    def answer(self) -> tuple[dict[str, Any], list[int], str]:
        """Return the answer, its descriptors, and what the compiler said besides."""
        with self._ours, self._process as process:
            try:
                _, complaints = process.communicate(timeout=_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                raise KernelOrBccMissing(
                    f"BCC did not finish compiling within {_TIMEOUT_S} s"
                ) from None
            raw, descriptors, _, _ = socket.recv_fds(self._ours, _MAX_ANSWER, _MAX_DESCRIPTORS)
        for fd in descriptors:
            # A command that is started and traced must not get hold of the maps.
            os.set_inheritable(fd, False)  # noqa: FBT003 - the only way to call it
        if not raw:
            message = f"exit status {process.returncode}"
            return {"error": "crash", "message": message}, [], complaints
        return json.loads(raw), list(descriptors), complaints

    def cancel(self) -> None:
        """End it without an answer."""
        with self._ours, self._process as process:
            process.kill()

    def _begin(self, message: str) -> None:
        stdin = self._process.stdin
        if stdin is None:
            return
        # A child that is already gone says why in its answer, or in having none.
        with contextlib.suppress(BrokenPipeError):
            stdin.write(message)
        with contextlib.suppress(BrokenPipeError):
            stdin.close()
        # `communicate` must not look for it.
        self._process.stdin = None


def _environment() -> dict[str, str]:
    environment = dict(os.environ)
    headers = find_headers(environment, os.uname().release)
    if headers is not None:
        environment["BCC_KERNEL_SOURCE"] = str(headers)
    return environment
