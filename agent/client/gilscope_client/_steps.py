"""Awaits something step by step, and counts what its own steps wait."""

from gilscope_client._sums import Sums

__all__ = ["Steps"]


class Steps(object):
    """To be awaited in place of something else."""

    __slots__ = ("_steps", "_sums", "_then")

    def __init__(self, awaited, then):
        """Await *awaited*, and call *then* with the Sums of its steps when it has ended."""
        self._steps = awaited.__await__()
        self._sums = Sums()
        self._then = then

    def __await__(self):
        return self

    def __iter__(self):
        return self

    def __next__(self):
        return self._step(next, self._steps)

    def send(self, value):
        """Let it go on with *value*, as a coroutine does."""
        if value is None:
            return self._step(next, self._steps)
        return self._step(self._steps.send, value)

    def throw(self, *error):
        """Let it go on with *error*, as a coroutine does."""
        return self._step(self._steps.throw, *error)

    def close(self):
        """End it, as a coroutine ends."""
        then, self._then = self._then, None
        try:
            self._sums.call(self._steps.close)
        finally:
            if then is not None:
                then(self._sums)

    def so_far(self):
        """Return the Sums until now."""
        return self._sums.so_far()

    def _step(self, function, *arguments):
        try:
            return self._sums.call(function, *arguments)
        except BaseException:
            # It has ended, in whatever way.
            then, self._then = self._then, None
            if then is not None:
                then(self._sums)
            raise
