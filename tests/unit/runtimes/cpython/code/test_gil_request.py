"""Whether a free-threaded Python was asked to have its GIL."""

import pytest

from gilscope.runtimes.cpython.code.gil_request import was_asked_for_gil

_LOADER = "/lib64/ld-linux-x86-64.so.2 --preload /x/main.so --library-path /x"


@pytest.mark.parametrize(
    ("line", "without", "with_variable"),
    [
        ("python3.14t app.py", False, True),
        ("python3.14t -X dev app.py", False, True),
        ("python3.14t -X gil=1 app.py", True, True),
        ("python3.14t -Xgil=1 app.py", True, True),
        ("python3.14t -bX gil=1 app.py", True, True),
        ("python3.14t -uXgil=1 app.py", True, True),
        ("python3.14t -X gil=0 app.py", False, False),
        # Of several the first one counts.
        ("python3.14t -X gil=1 -X gil=0 app.py", True, True),
        ("python3.14t -X gil=0 -X gil=1 app.py", False, False),
        # Python ignores its variables then.
        ("python3.14t -E app.py", False, False),
        ("python3.14t -Es app.py", False, False),
        ("python3.14t -Im app", False, False),
        ("python3.14t -EX dev app.py", False, False),
        ("python3.14t -I -X gil=1 app.py", True, True),
        # Values of other options.
        ("python3.14t -WI app.py", False, True),
        ("python3.14t -W E app.py", False, True),
        ("python3.14t --check-hash-based-pycs always -E app.py", False, False),
        # What is the program's own.
        ("python3.14t celery worker -E", False, True),
        ("python3.14t app.py -X gil=1", False, True),
        ("python3.14t -m app -X gil=1", False, True),
        ("python3.14t -c pass -E", False, True),
        ("python3.14t -- -E", False, True),
        ("python3.14t - -E", False, True),
        (f"{_LOADER} python3.14t -X gil=1 -m app", True, True),
        (f"{_LOADER} python3.14t -E -m app", False, False),
        ("gunicorn: master [app]", False, True),
        ("python3.14t -X", False, True),
        ("", False, True),
    ],
)
def test_options_have_the_last_word(line: str, without: bool, with_variable: bool) -> None:  # noqa: FBT001 - parameters of the test
    """
    As Python reads them; the variable counts where they leave it to that.
    """
    words = line.split(" ")

    assert without is was_asked_for_gil(words, lambda: False)
    assert with_variable is was_asked_for_gil(words, lambda: True)


def test_the_environment_is_left_alone_where_it_does_not_count() -> None:
    """
    There may be secrets in it.
    """

    def read() -> bool:
        raise AssertionError

    assert was_asked_for_gil(["python3.14t", "-X", "gil=1"], read)
    assert not was_asked_for_gil(["python3.14t", "-I", "app.py"], read)
