"""Names of processes."""

import pytest

from gilscope.naming.process import is_worker, process_name, worker_name


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


@pytest.mark.parametrize(
    ("argv", "is_one"),
    [
        (["python3", "-c", "from multiprocessing.spawn import spawn_main; spawn_main()"], True),
        (["python3", "-B", "-c", "from multiprocessing.forkserver import main; main()"], True),
        (["python3", "-m", "joblib.externals.loky.backend.popen_loky_posix", "--pipe", "5"], True),
        (["python3", "-c", "import multiprocessing"], False),
        (["python3", "app.py", "from multiprocessing.spawn import x"], False),
        (["python3", "-c"], False),
        ([], False),
    ],
)
def test_worker_is_told_by_its_command_line(argv: list[str], *, is_one: bool) -> None:
    """
    What `multiprocessing` and `joblib` start says nothing of the program that it works for.
    """
    assert is_one == is_worker(argv)


def test_worker_is_called_after_its_program() -> None:
    """
    One whose program is not known is a worker all the same.
    """
    assert ["app.py worker", "worker"] == [worker_name("app.py"), worker_name("")]
