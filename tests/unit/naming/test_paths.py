"""Gives one source file one name, on every host and after every restart."""

import pytest

from gilscope.naming.paths import is_standard_library, short_path


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/usr/lib/python3.11/threading.py", "threading.py"),
        ("/usr/lib/python3.11/concurrent/futures/thread.py", "concurrent/futures/thread.py"),
        ("/opt/py/lib64/python3.13/json/decoder.py", "json/decoder.py"),
        ("/usr/lib/pypy3.9/threading.py", "threading.py"),
        ("/usr/lib/pypy/lib-python/2.7/threading.py", "threading.py"),
        ("/usr/lib/pypy3/lib-python/3/json/decoder.py", "json/decoder.py"),
        # As PyPy's own archives and images have it.
        ("/opt/pypy/lib-python/2.7/json/decoder.py", "json/decoder.py"),
        ("/opt/pypy3.7-v7.3.9-linux64/lib-python/3/threading.py", "threading.py"),
        ("/opt/pypy3.10-v7.3.15-linux64/lib/pypy3.10/threading.py", "threading.py"),
        ("/opt/py/lib/python3.13t/json/decoder.py", "json/decoder.py"),
        ("/usr/lib/python311.zip/json/decoder.py", "json/decoder.py"),
        ("/home/me/.pyenv/versions/3.8.18/lib/python3.8/ssl.py", "ssl.py"),
        ("/srv/venv/lib/python3.11/site-packages/flask/app.py", "flask/app.py"),
        ("/usr/lib/python3/dist-packages/yaml/reader.py", "yaml/reader.py"),
        (
            "/srv/lib/python3.9/site-packages/tool/lib/python3.11/site-packages/six.py",
            "six.py",
        ),
        ("/srv/app/jobs.py", "jobs.py"),
        ("/srv/app/worker/jobs.py", "jobs.py"),
        ("/srv/application/jobs.py", "jobs.py"),
        ("/elsewhere/deep/jobs.py", "jobs.py"),
        ("jobs.py", "jobs.py"),
        ("./jobs.py", "jobs.py"),
        ("././worker/jobs.py", "worker/jobs.py"),
        ("../jobs.py", "../jobs.py"),
        ("/tmp/ipykernel_47/1632140807.py", "notebook cell 1632140807"),
        ("/srv/ipykernel_launcher/1632140807.py", "1632140807.py"),
        ("<ipython-input-3-0a1b2c3d4e5f>", "cell In[3]"),
        ("<ipython-input>", "<ipython-input>"),
        ("<string>", "<string>"),
        ("<frozen importlib._bootstrap>", "<frozen importlib._bootstrap>"),
        ("", ""),
    ],
)
def test_short_path(path: str, expected: str) -> None:
    """Libraries are named from where they are imported, others by their last component."""
    assert expected == short_path(path)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/usr/lib/python3.11/threading.py", True),
        ("/opt/pypy/lib-python/2.7/threading.py", True),
        ("/opt/pypy/site-packages/threading.py", False),
        ("/usr/lib/python3.11/site-packages/threading.py", False),
        ("/srv/app/threading.py", False),
        ("concurrent/futures/thread.py", True),
        ("queue.py", True),
        ("jobs.py", False),
        ("shop/queue.py", False),
        ("./queue.py", False),
        ("<string>", False),
    ],
)
def test_is_standard_library(path: str, *, expected: bool) -> None:
    """
    What is installed into a Python is not part of it; what is frozen has names of modules alone.
    """
    assert expected is is_standard_library(path)
