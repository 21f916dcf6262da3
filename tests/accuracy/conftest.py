"""What the accuracy tests share."""

from collections.abc import Iterator

import pytest

from accuracy.blame_truth import Stage, stage_of
from gilscope.gil.probes.probe import GilProbe
from support.interpreters.known import INTERPRETERS, Interpreter
from support.tracing.trace import probe, site_cache, tracer, trap_costs

__all__ = ["fresh_stage", "probe", "site_cache", "stage", "tracer", "trap_costs"]


@pytest.fixture(autouse=True)
def fresh_stage(request: pytest.FixtureRequest) -> None:
    """Let a test that is made again measure again, too."""
    if getattr(request.node, "execution_count", 1) > 1 and "stage" in request.fixturenames:
        request.getfixturevalue("stage").forget()


@pytest.fixture(scope="module", params=INTERPRETERS)
def stage(request: pytest.FixtureRequest, probe: GilProbe) -> Iterator[Stage]:
    """One interpreter; all tests share what has run on it."""
    interpreter: Interpreter = request.param
    with stage_of(interpreter, probe) as made:
        yield made
