"""Basic authentication against hashes of bcrypt."""

import base64
import binascii
import hashlib
import secrets
import threading
from collections.abc import Mapping

import bcrypt

from gilscope.web.guard import Busy

__all__ = ["Passwords"]

_MOST_BYTES = 72
"""What bcrypt uses of a password."""
_COST, _SALT = slice(4, 6), slice(7, 29)
"""Where they are in a hash."""
_MOST_REFUSED = 100
_MOST_WAITING = 8


class Passwords:
    """Knows the users. Its methods may be called by several threads."""

    def __init__(self, users: Mapping[str, str]) -> None:
        """Let in *users*, which have hashes of bcrypt by name."""
        self._hashes = {name.encode(): hashed.encode() for name, hashed in users.items()}
        # bcrypt is slow on purpose, and a scraper comes every few seconds. What is remembered is
        # no password, and is of no use elsewhere.
        self._key = secrets.token_bytes(32)
        self._admitted: set[bytes] = set()
        self._refused: dict[bytes, None] = {}
        self._slowest = max(self._hashes.values(), key=_cost)
        self._turn = threading.Lock()
        self._queue = threading.Semaphore(_MOST_WAITING)

    def admits(self, authorization: str) -> bool:
        """Return whether the header *authorization* has the name and the password of a user.

        Raises Busy where too many others are being checked.
        """
        scheme, _, encoded = authorization.strip().partition(" ")
        if scheme.lower() != "basic":
            return False
        try:
            credentials = base64.b64decode(encoded.strip(), validate=True)
        except (binascii.Error, ValueError):
            return False
        mark = hashlib.blake2b(credentials, key=self._key).digest()
        if mark in self._admitted or mark in self._refused:
            return mark in self._admitted
        # One at a time: whoever asks gets no more than one core to keep busy, and few threads.
        if not self._queue.acquire(blocking=False):
            raise Busy
        try:
            with self._turn:
                return self._check(credentials, mark)
        finally:
            self._queue.release()

    def _check(self, credentials: bytes, mark: bytes) -> bool:
        name, _, password = credentials.partition(b":")
        # Who guesses names is not told by the time whether there is such a user.
        hashed = self._hashes.get(name, self._slowest)
        is_right = bcrypt.checkpw(password[:_MOST_BYTES], hashed)
        self._spend_the_rest(_cost(hashed))
        if is_right and name in self._hashes:
            self._admitted.add(mark)
            return True
        self._refused[mark] = None
        if len(self._refused) > _MOST_REFUSED:
            del self._refused[next(iter(self._refused))]
        return False

    def _spend_the_rest(self, cost: int) -> None:
        """Compute as long as the slowest hash takes, less what one of *cost* has taken.

        Each step of the cost doubles the time, and 2**c + 2**c + 2**(c + 1) + ... is 2**most.
        """
        for step in range(cost, _cost(self._slowest)):
            bcrypt.hashpw(b"", b"$2b$%02d$%s" % (step, self._slowest[_SALT]))


def _cost(hashed: bytes) -> int:
    return int(hashed[_COST])
