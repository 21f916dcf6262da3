"""Does what may stop the world of a free-threaded Python, each so many times, in its own function.

world_stops.py TIMES alone|busy|two: with no other thread that would have to stop, beside one that
computes, or beside one that stops it as well. Each is timed.
"""

import gc
import os
import sys
import threading
import time
import warnings

from handshake import await_begin, finish, ready

_TOOL = 3
times = int(sys.argv[1])


def function() -> None:
    """Be changed."""


class Base:
    """What is derived from."""


class OtherBase:
    """The same."""


class Changed(Base):
    """What is changed."""


class Other(Base):
    """What an object becomes."""


def collect() -> None:
    """Collect garbage."""
    gc.collect()


def objects() -> None:
    """List all objects."""
    gc.get_objects()


def referrers() -> None:
    """List who refers to something."""
    gc.get_referrers(function)


def referents() -> None:
    """List what something refers to."""
    gc.get_referents(function)


def freeze() -> None:
    """Take objects out of collection, and back."""
    gc.freeze()
    gc.unfreeze()


def frames() -> None:
    """List what all threads do."""
    sys._current_frames()  # noqa: SLF001 - that is what it is about


def exceptions() -> None:
    """List what all threads handle."""
    sys._current_exceptions()  # noqa: SLF001 - likewise


def recursion() -> None:
    """Set a limit."""
    sys.setrecursionlimit(1000)


def blocks() -> None:
    """Count memory."""
    sys.getallocatedblocks()


def events() -> None:
    """Have calls monitored, and not any more."""
    sys.monitoring.set_events(_TOOL, 1)
    sys.monitoring.set_events(_TOOL, 0)


def local_events() -> None:
    """Have calls of one function monitored, and not any more."""
    sys.monitoring.set_local_events(_TOOL, function.__code__, 1)
    sys.monitoring.set_local_events(_TOOL, function.__code__, 0)


def callback() -> None:
    """Say who is told of them."""
    sys.monitoring.register_callback(_TOOL, 1, None)


def fork() -> None:
    """Have a child."""
    pid = os.fork()
    if not pid:
        os._exit(0)
    os.waitpid(pid, 0)


def name() -> None:
    """Change a function's name."""
    function.__name__ = "function"


def qualname() -> None:
    """Change its long name."""
    function.__qualname__ = "function"


def doc() -> None:
    """Change what it says of itself."""
    function.__doc__ = "Be changed."


def module() -> None:
    """Change where it is from."""
    function.__module__ = "here"


def defaults() -> None:
    """Change its defaults."""
    function.__defaults__ = None


def kwdefaults() -> None:
    """Change its other defaults."""
    function.__kwdefaults__ = None


def code() -> None:
    """Change its code."""
    function.__code__ = function.__code__


def class_name() -> None:
    """Change a class' name."""
    Changed.__name__ = "Changed"


def bases() -> None:
    """Change what a class is derived from, and back."""
    Changed.__bases__ = (OtherBase,)
    Changed.__bases__ = (Base,)


def attribute() -> None:
    """Change what stops nothing."""
    function.attribute = 1
    Changed.attribute = 1


ALL = (
    *(collect, objects, referrers, referents, freeze, frames, exceptions, recursion, blocks),
    *(events, local_events, callback, fork, name, qualname, doc, module, defaults, kwdefaults),
    *(code, class_name, bases, attribute),
)


def compute() -> None:
    """Have to be stopped."""
    while True:
        sum(range(100))


# Collections are none but those that are asked for.
gc.disable()
warnings.simplefilter("ignore")
sys.monitoring.use_tool_id(_TOOL, "world stops")
if "busy" in sys.argv:
    threading.Thread(target=compute, daemon=True).start()
clock = time.perf_counter_ns


def change() -> None:
    """Stop the world, as often as all the others together, and say how long it took."""
    for _ in range(len(ALL) * times):
        doc()


ready()
await_begin()
took_ns = {}
if "two" in sys.argv:
    other = threading.Thread(target=change)
    began_ns = clock()
    other.start()
    change()
    other.join()
    took_ns["doc"] = clock() - began_ns
else:
    for each in ALL:
        began_ns = clock()
        for _ in range(times):
            each()
        took_ns[each.__name__] = clock() - began_ns
finish({"took_ns": took_ns, "operations": len(ALL)})
os._exit(0)
