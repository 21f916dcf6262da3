"""Tells what each request of a WSGI application has waited for the GIL.

::

    application = Middleware(application)

The response has a header ``Server-Timing: gil;dur=1.234``, milliseconds up to its beginning. Where
the application uses prometheus_client there are histograms
``gilscope_request_gil_wait_seconds{route, method}`` and ``gilscope_request_seconds{route, method}``
in its registry, and where it uses OpenTelemetry the current span has ``gilscope.gil_wait_ns`` and
``gilscope.gil_waits``.
"""

from gilscope_client._request import clock_s, observe, server_timing
from gilscope_client._sums import Sums

__all__ = ["Middleware"]


class Middleware(object):
    """A WSGI application around another one."""

    def __init__(self, application, route=None):
        """Call *application*; *route* returns the route of an environ, one of few, as a string."""
        self._application = application
        self._route = route

    def __call__(self, environ, start_response):
        """Handle one request."""
        request = _Request(environ, self._route)

        def start(status, headers, *error):
            timing = server_timing(request.sums.so_far())
            if timing is not None:
                headers = list(headers) + [("Server-Timing", timing)]  # noqa: RUF005 - 2.7
            return start_response(status, headers, *error)

        try:
            body = request.sums.call(self._application, environ, start)
        except BaseException:
            request.end()
            raise
        if isinstance(body, (list, tuple)):
            request.end()
            return body
        return _Body(body, request)


class _Request(object):
    """The waits of one request."""

    def __init__(self, environ, route):
        self._environ = environ
        self._route = route
        self._began_s = clock_s()
        self.sums = Sums()
        self._is_over = False

    def end(self):
        """Let all know them, once."""
        if not self._is_over:
            self._is_over = True
            route = "" if self._route is None else self._route(self._environ)
            method = self._environ.get("REQUEST_METHOD", "")
            observe(self.sums, route, method, clock_s() - self._began_s)


class _Body(object):
    """What the application sends, piece by piece."""

    def __init__(self, body, request):
        self._body = body
        self._pieces = None
        self._request = request

    def __iter__(self):
        return self

    def __next__(self):
        return self._request.sums.call(self._piece)

    next = __next__

    def close(self):
        """Say that the server wants no more."""
        try:
            if hasattr(self._body, "close"):
                self._request.sums.call(self._body.close)
        finally:
            self._request.end()

    def _piece(self):
        if self._pieces is None:
            self._pieces = iter(self._body)
        return next(self._pieces)
