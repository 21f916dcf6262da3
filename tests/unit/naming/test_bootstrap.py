"""Knows the frames of Python's own module `threading`."""

import pytest

from gilscope.model.stack import Frame
from gilscope.naming.bootstrap import is_threading


@pytest.mark.parametrize(
    ("file", "is_one"),
    [
        ("/usr/lib/python3.11/threading.py", True),
        ("threading.py", True),
        ("/srv/app/threading.py", False),
        ("/venv/lib/python3.11/site-packages/gevent/threading.py", False),
        ("/usr/lib/python3.11/queue.py", False),
    ],
)
def test_frame_of_threading(file: str, *, is_one: bool) -> None:
    """
    It is the standard library's, or under its bare name, as packagers store it.
    """
    assert is_one == is_threading(Frame("Thread.run", file, 971))
