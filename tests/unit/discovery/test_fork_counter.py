"""Whether anything has started since somebody looked last."""

import threading
from pathlib import Path

from gilscope.discovery.fork_counter import Births


def test_the_number_that_was_given_out_last_decides(tmp_path: Path) -> None:
    """
    The loads and the count of threads before it may change as they like.
    """
    load = tmp_path / "loadavg"
    load.write_text("0.65 0.22 0.14 1/94 6173\n")
    births = Births(load)

    assert [True, False] == [births.are_new(), births.are_new()]
    load.write_text("3.00 1.22 0.14 4/99 6173\n")
    assert not births.are_new()
    load.write_text("3.00 1.22 0.14 4/99 6174\n")
    assert [True, False] == [births.are_new(), births.are_new()]


def test_a_thread_of_this_process_is_one() -> None:
    """
    The kernel numbers threads and processes alike.
    """
    births = Births()
    births.are_new()
    thread = threading.Thread(target=int)
    thread.start()
    thread.join()

    assert births.are_new()


def test_what_cannot_be_read_may_have_changed(tmp_path: Path) -> None:
    """
    Without the file, or with nothing in it, there may be something new each time.
    """
    (tmp_path / "empty").write_text("")
    for births in (Births(tmp_path / "absent"), Births(tmp_path / "empty")):
        assert [True, True] == [births.are_new(), births.are_new()]
