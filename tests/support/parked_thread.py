"""A thread of this process that waits, for what reads the kernel's list of threads."""

from collections.abc import Iterator
from contextlib import contextmanager
from queue import Queue
from threading import Event, Thread, get_native_id

__all__ = ["parked_thread"]


@contextmanager
def parked_thread() -> Iterator[int]:
    """Yield the tid of a thread that lives until the context ends."""
    tids: Queue[int] = Queue()
    end = Event()

    def wait() -> None:
        tids.put(get_native_id())
        end.wait()

    thread = Thread(target=wait)
    thread.start()
    try:
        yield tids.get()
    finally:
        end.set()
        thread.join()
