"""The table of runtimes that experiments are run on."""

import contextlib

import pytest
from bench.experiments.runtimes import FREE_THREADED, RUNTIMES, TWIN

from support.interpreters.interpreter import Unavailable
from support.interpreters.known import find_interpreter

_ALL = (*RUNTIMES, FREE_THREADED, TWIN)


@pytest.mark.parametrize("name", [name for each in _ALL for name in each.interpreters])
def test_each_is_an_interpreter_of_the_tests(name: str) -> None:
    """
    It may not be on this machine; a name that nothing bears would end a run of an hour.
    """
    with contextlib.suppress(Unavailable):
        assert name == find_interpreter(name).name
