"""Which Python it is, in words."""

import pytest

from gilscope.naming.python import python_words


@pytest.mark.parametrize(
    ("version", "words"),
    [
        ("3.11.2", "CPython 3.11.2"),
        ("3.9.16 (PyPy 7.3.11)", "Python 3.9.16 (PyPy 7.3.11)"),
        ("PyPy", "PyPy"),
        ("3.14.9t", "CPython 3.14.9t, free-threaded with its GIL on"),
    ],
)
def test_the_implementation_is_named(version: str, words: str) -> None:
    """
    A version alone is CPython's.
    """
    assert words == python_words(version)
