"""The client on each Python that it is for."""

import subprocess

import pytest

from support.interpreters.known import CPYTHON_27, ONE_PER_MINOR, PYPYS, Interpreter
from support.paths import AGENT

_LINES = """
import sys
from gilscope_client import connect, region
@region()
def call():
    with region("inner") as inner:
        return inner
inner = call()
assert (inner.wait_ns, inner.waits, inner.held_ns) == (None, None, None)
assert not connect(0)
print("harmless")
"""


@pytest.mark.parametrize("interpreter", [*CPYTHON_27[:1], *ONE_PER_MINOR, *PYPYS[-1:]])
def test_client_does_no_harm_where_there_is_no_agent(interpreter: Interpreter) -> None:
    """
    It is imported, and tells nothing.
    """
    told = subprocess.run(
        # -B: 2.7 puts what it compiles beside the source.
        [*interpreter.argv, "-B", "-W", "error", "-c", _LINES],
        env={**interpreter.env, "PYTHONPATH": str(AGENT / "client"), "GILSCOPE_REGIONS": "/none"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert ("harmless\n", "") == (told.stdout, told.stderr)
