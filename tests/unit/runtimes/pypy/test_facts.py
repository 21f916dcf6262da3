"""What a PyPy's file says of it."""

import pytest

from gilscope.runtimes.pypy.facts import Facts, packed_version


@pytest.mark.parametrize(("python", "pypy"), [("2.7.18", "7.3.3"), ("3.11.17", "8.0.1")])
def test_versions_are_told(python: str, pypy: str) -> None:
    """
    The language's first, as everywhere.
    """
    facts = Facts({"python": packed_version(python), "pypy": packed_version(pypy)})

    assert f"{python} (PyPy {pypy})" == facts.version


def test_without_versions_it_is_pypy() -> None:
    """
    A build that does not say more.
    """
    assert "PyPy" == Facts({"lock": 8}).version


@pytest.mark.parametrize(("numbers", "knows"), [({}, False), ({"threads": 8}, True)])
def test_frames_are_known_with_the_threads(numbers: dict[str, int], *, knows: bool) -> None:
    """
    All that is needed for stacks is found, or nothing of it.
    """
    assert knows is Facts(numbers).knows_frames
