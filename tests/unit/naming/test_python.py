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


def test_why_a_free_threaded_one_has_its_gil_is_said() -> None:
    """
    It was asked for, or else a module needs it.
    """
    on = "CPython 3.14.9t, free-threaded with its GIL on"

    assert f"{on} from its start, as was asked for" == python_words(
        "3.14.9t", needed_by="fast", is_gil_asked_for=True
    )
    assert f"{on}, which module fast needs" == python_words("3.14.9t", needed_by="fast")
    assert "CPython 3.14.9t" == python_words("3.14.9t", is_gil_asked_for=True, tells_gil=False)
