"""Pythons without CPython's C API are refused by name, and nothing else is."""

import pytest

from gilscope.errors import UnsupportedPython
from gilscope.runtimes.others import refuse_other_pythons

_JVM = "/usr/lib/jvm/lib/server/libjvm.so"


@pytest.mark.parametrize(
    ("command", "paths", "name", "sign"),
    [
        (["java", "-cp", "a:/opt/jython-standalone-2.7.3.jar", "x"], [_JVM], "Jython", "2.7.3.jar"),
        (["java", "org.python.util.jython", "a.py"], [_JVM], "Jython", "org.python.util.jython"),
        (["java", "com.oracle.graal.python.shell.GraalPythonMain"], [_JVM], "GraalPy", "graal"),
        (["./app"], ["/opt/graalpy/lib/libpythonvm.so"], "GraalPy", "maps libpythonvm.so"),
        (["graalpy"], ["/opt/bin/graalpy3.11 (deleted)"], "GraalPy", "maps graalpy3.11"),
        (["m", "a.py"], ["/usr/bin/micropython"], "MicroPython", "runs micropython"),
    ],
    ids=["jar", "jython", "graal-java", "graal-library", "graal-launcher", "micropython"],
)
def test_each_is_told_by_a_sign_that_is_named(
    command: list[str], paths: list[str], name: str, sign: str
) -> None:
    """
    The name, what was found, and what to do.
    """
    with pytest.raises(UnsupportedPython, match=f"this is {name} .*{sign}") as caught:
        refuse_other_pythons(command, ["/lib/libc.so.6", *paths])

    assert "CPython 3.6 to 3.15" in caught.value.remedy


@pytest.mark.parametrize(
    ("command", "paths"),
    [
        (["java", "-jar", "app.jar"], [_JVM]),
        (["cat", "org.python.util.jython", "jython.jar"], ["/bin/cat"]),
        (["vi", "micropython.py"], ["/usr/bin/vi", "/home/me/libpythonvm.so.txt"]),
        ([], []),
    ],
    ids=["java", "words", "names", "nothing"],
)
def test_others_are_none_of_them(command: list[str], paths: list[str]) -> None:
    """
    Java without Python, and programs that only speak of one.
    """
    refuse_other_pythons(command, paths)
