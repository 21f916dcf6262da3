"""What the routes of requests are called."""

from gilscope.text.printable import printable

__all__ = ["route_name"]


def route_name(route: str | None) -> str:
    """Return *route* as it is shown; None: none was published."""
    return "no route" if route is None else printable(route)
