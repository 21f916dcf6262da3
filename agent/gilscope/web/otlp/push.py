"""Sends requests to a receiver of OTLP, again and again."""

import gzip
import json
import logging
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from http.client import HTTPException

from gilscope.text.printable import printable

__all__ = ["Push"]

_log = logging.getLogger(__name__)

_TIMEOUT_S = 10.0
_MOST_ANSWER = 65536
_MOST_WORDS = 300
_REJECTED = ("rejectedDataPoints", "rejectedProfiles")
_FIXED = {"Content-Type": "application/json", "Content-Encoding": "gzip"}


class Push:
    """Sends what is made for it each time; one that does not arrive is not sent again."""

    def __init__(
        self,
        url: str,
        headers: Mapping[str, str],
        make: Callable[[], bytes | None],
        taken: Callable[[], None] = lambda: None,
    ) -> None:
        """Send what *make* returns, which is JSON, to *url*, whose scheme has been checked.

        None is nothing to send. *taken* is called whenever a request was.
        """
        self._url = url
        self._headers = {**headers, **_FIXED}
        self._make = make
        self._taken = taken
        self._failed = 0

    def run(self, every_s: float, stopped: threading.Event) -> None:
        """Send every *every_s* seconds until *stopped*."""
        while not stopped.wait(every_s):
            try:
                self.once()
            except Exception:  # noqa: BLE001 - what cannot be sent now may be sent later
                _log.exception("could not make the figures for OTLP this time")

    def once(self) -> bool:
        """Send, and return whether it was taken; the log says when that changes."""
        body = self._make()
        if body is None:
            return True
        failure = self._send(gzip.compress(body))
        if failure:
            if not self._failed:
                _log.warning("%s does not take OTLP: %s", printable(self._url), failure)
            self._failed += 1
        elif self._failed:
            _log.info("%s takes OTLP again, after %d failures", printable(self._url), self._failed)
            self._failed = 0
        if not failure:
            self._taken()
        return not failure

    def _send(self, body: bytes) -> str:
        """Return why *body* was not taken, or not all of it; empty: it was."""
        request = urllib.request.Request(self._url, body, self._headers)  # noqa: S310 - the scheme was checked
        try:
            with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as answer:  # noqa: S310 - likewise
                return _rejected(answer.read(_MOST_ANSWER))
        except urllib.error.HTTPError as error:
            words = error.read(_MOST_WORDS).decode(errors="replace").strip()
            return f"{error.code} {printable(words) or error.reason}"
        except (OSError, HTTPException, ValueError) as error:
            return printable(str(getattr(error, "reason", None) or error))


def _rejected(answer: bytes) -> str:
    """Return what a receiver says of figures that it has left out; empty: it has none."""
    try:
        partial = json.loads(answer)["partialSuccess"]
        number = sum(int(partial.get(what, 0)) for what in _REJECTED)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return ""  # nothing in it, or in another form: it was taken, by its status
    words = printable(str(partial.get("errorMessage", "")))[:_MOST_WORDS]
    return f"it has rejected {number} of them: {words}" if number else ""
