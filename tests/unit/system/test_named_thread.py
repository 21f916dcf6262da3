"""Threads that the kernel knows by name."""

import threading
from pathlib import Path

from gilscope.system.named_thread import named_thread


def test_the_kernel_knows_it_by_its_name() -> None:
    """
    Cut to what the kernel keeps; arguments go through, and no frame comes between.
    """
    go_on = threading.Event()
    thread = named_thread("a-name-that-is-long", go_on.wait, 60)
    thread.start()
    told = Path(f"/proc/self/task/{thread.native_id}/comm").read_text()
    go_on.set()
    thread.join()

    assert "a-name-that-is-\n" == told
    assert ("a-name-that-is-long", True) == (thread.name, thread.daemon)


def test_a_thread_that_has_ended_needs_no_name() -> None:
    """
    It may have when its starter comes to run again.
    """
    threads = [named_thread("brief", int) for _ in range(100)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert not any(thread.is_alive() for thread in threads)
