"""What Python 2.7 has no syntax for."""

import functools

__all__ = ["wrapped"]


def wrapped(function, new):
    """Return coroutine function *function* with a region around each call, which *new* makes."""

    @functools.wraps(function)
    async def wrapper(*arguments, **named):
        return await new().run(function(*arguments, **named))

    return wrapper
