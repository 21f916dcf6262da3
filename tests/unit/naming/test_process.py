"""Names of processes."""

import pytest

from gilscope.naming.process import process_name


@pytest.mark.parametrize(
    ("argv", "name"),
    [
        (["python3", "/srv/app.py", "--port", "80"], "app.py"),
        (["/usr/bin/python3.11", "-u", "-X", "dev", "app.py"], "app.py"),
        (["python", "-Wignore", "-Eum", "http.server", "8000"], "http.server"),
        (["python", "-m", "celery", "-A", "proj"], "celery"),
        (["python", "-mhttp.server"], "http.server"),
        (["python", "-c", "print()"], "python -c"),
        (["python", "--check-hash-based-pycs", "never", "x.py"], "x.py"),
        (["python3"], "python3"),
        (["python3", "-"], "python3"),
        (["/srv/venv/bin/python", "/srv/venv/bin/gunicorn", "app:app"], "gunicorn"),
        (["/usr/sbin/uwsgi", "--ini", "x"], "uwsgi"),
        (["gunicorn: worker [app]"], "gunicorn: worker [app]"),
        (["/lib64/ld-linux-x86-64.so.2", "--library-path", "/x", "/x/python3", "a.py"], "a.py"),
        ([], "unknown"),
        ([""], "unknown"),
        (["python3", "caf\udce9.py"], "caf\\udce9.py"),
        (["python3", "\033]0;PWN\a\033[31mred\r\n\u202e.py"], "]0;PWN[31mred  .py"),
        (["\u202e\u2066\033"], "unknown"),
        (["gunicorn:\tworker \x9b31m[app]"], "gunicorn: worker 31m[app]"),
    ],
)
def test_name_is_what_the_user_would_call_it(argv: list[str], name: str) -> None:
    """
    The script, the module or the program names the process, never its options.
    """
    assert name == process_name(argv)


def test_name_has_a_bounded_length() -> None:
    """
    A label value does not grow with a command line.
    """
    assert 64 == len(process_name(["python", "x" * 1000 + ".py"]))
    assert 64 == len(process_name(["python", "\udce9" * 1000 + ".py"]))
    assert 64 == len(process_name(["title " * 1_000_000]))
