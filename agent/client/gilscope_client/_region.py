"""A region of a program, and what it has waited."""

import functools
import inspect
import sys

from gilscope_client._steps import Steps
from gilscope_client._sums import begin, waited

__all__ = ["region"]

# inspect.CO_COROUTINE, CO_ITERABLE_COROUTINE and CO_ASYNC_GENERATOR.
_MAY_AWAIT = 0x80 | 0x100 | 0x200
_modules = sys.modules
UNKNOWN = (None, None, None)


class region(object):
    """What a block, a function or a coroutine waits for the GIL.

    ``wait_ns``: nanoseconds for which its thread has waited, ``waits``: how often, ``held_ns``:
    nanoseconds for which it held the GIL, of which only an agent in full mode tells. None: not
    known, before the end of the block and where no agent tells. Regions may lie inside of each
    other, and each counts all of its own.

    As a block: ``with region("render") as r:``. Around an ``await`` at which other tasks have run
    it has no figures, because the thread's waits were theirs too.

    As a decorator, ``@region("render", then=note)``, of functions and of coroutine functions: each
    call is a region of its own, which *then* is called with at its end.

    Around a coroutine: ``await region("render", then=note).run(coroutine)``. It is charged with
    what its own steps have waited, and with nothing of other tasks; so is a decorated one.
    """

    __slots__ = ("_began", "_pause", "held_ns", "name", "then", "wait_ns", "waits")

    def __init__(self, name="", then=None):
        """Name it as you like. *then*, if any, is called with it at its end."""
        self.name = name
        self.then = then
        self.wait_ns = self.waits = self.held_ns = None
        self._began = self._pause = None

    def __repr__(self):
        return "region(%r, wait_ns=%r, waits=%r)" % (self.name, self.wait_ns, self.waits)

    def __enter__(self):
        self.wait_ns = self.waits = self.held_ns = None
        if "asyncio" in _modules or "trio" in _modules:
            self._pause = _pause()
        self._began = begin()
        return self

    def __exit__(self, kind, error, traceback):
        figures, self._began = waited(self._began), None
        if self._pause is not None:
            pause, self._pause = self._pause, None
            if pause.is_over():
                figures = None
        # As `_end` does, without what a call costs.
        if figures is not None:
            self.wait_ns, self.waits, self.held_ns = figures
        if self.then is not None:
            self.then(self)
        return False

    def __call__(self, function):
        """Return *function* with a region around each call; raises TypeError of a generator."""
        name = self.name or getattr(function, "__qualname__", function.__name__)
        new = functools.partial(region, name, self.then)
        if getattr(inspect, "iscoroutinefunction", _no)(function):
            # Its syntax is unknown to 2.7.
            from gilscope_client._coroutines import wrapped  # noqa: PLC0415

            return wrapped(function, new)
        is_async_generator = getattr(inspect, "isasyncgenfunction", _no)(function)
        if is_async_generator or inspect.isgeneratorfunction(function):
            raise TypeError("a generator is left and entered again: use regions inside of it")

        @functools.wraps(function)
        def wrapper(*arguments, **named):
            one, began = new(), begin()
            try:
                return function(*arguments, **named)
            finally:
                one._end(waited(began))  # noqa: SLF001 - its own

        return wrapper

    def run(self, coroutine):
        """Return what to await in place of *coroutine*, or of anything else that is awaited."""
        return Steps(coroutine, self._end_of_steps)

    def _end_of_steps(self, sums):
        self._end((sums.wait_ns, sums.waits, sums.held_ns) if sums.is_known else None)

    def _end(self, figures):
        self.wait_ns, self.waits, self.held_ns = UNKNOWN if figures is None else figures
        if self.then is not None:
            self.then(self)


class _Pause(object):
    """Whether the running task has let others run since this was made."""

    __slots__ = ("_handle", "_has_run")

    def __init__(self, loop):
        self._has_run = loop is None
        # What is ready runs in order, and this is before whatever lets the task go on.
        self._handle = None if loop is None else loop.call_soon(self._run)

    def is_over(self):
        """Return whether it has, or may have."""
        if self._handle is not None:
            self._handle.cancel()
        return self._has_run

    def _run(self):
        self._has_run = True


def _pause():
    """Return what knows whether the caller's caller was suspended; None: it cannot be."""
    try:
        if "asyncio" in _modules:
            # It raises nothing, and is written in C.
            loop = _modules["asyncio"]._get_running_loop()  # noqa: SLF001
            if loop is not None:
                return _Pause(loop)
        if "trio" not in _modules:
            return None
        flags = sys._getframe(2).f_code.co_flags  # noqa: SLF001 - the only way to the caller
        return _Pause(None) if flags & _MAY_AWAIT else None
    except Exception:  # nothing that goes wrong here is the program's
        return _Pause(None)


def _no(_function):
    return False
