"""Tells what each request of an ASGI application has waited for the GIL; see gilscope_client.wsgi.

::

    app = Middleware(app)

A request is charged with what its own steps have waited, and with nothing of other requests that
the event loop has run meanwhile. What it has others do in threads is not among it.
"""

from gilscope_client._request import clock_s, observe, server_timing
from gilscope_client._steps import Steps

__all__ = ["Middleware"]


class Middleware:
    """An ASGI application around another one."""

    def __init__(self, app, route=None):
        """Call *app*; *route* returns the route of a scope, one of few, as a string.

        Without it that is what Starlette and FastAPI have found, such as ``/users/{user}``.
        """
        self._app = app
        self._route = _found_route if route is None else route

    async def __call__(self, scope, receive, send):
        """Handle one request, or anything else as it is."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_timing(message):
            if message["type"] == "http.response.start":
                timing = server_timing(steps.so_far())
                if timing is not None:
                    header = (b"server-timing", timing.encode())
                    message = {**message, "headers": [*message.get("headers", ()), header]}
            await send(message)

        def end(sums):
            observe(sums, self._route(scope), scope.get("method", ""), clock_s() - began_s)

        began_s = clock_s()
        steps = Steps(self._app(scope, receive, send_with_timing), end)
        await steps


def _found_route(scope):
    return getattr(scope.get("route"), "path", "")
