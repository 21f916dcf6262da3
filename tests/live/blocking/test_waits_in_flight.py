"""Waits that last while the tables are read, which takes long where the CPUs are busy."""

from collections.abc import Mapping

import pytest

from gilscope.gil.tracing.account import GilAccount
from support.commands.gilscope import eventually
from support.held_in_c import holder_started

pytestmark = [pytest.mark.live, pytest.mark.beside_others]

_FIRST_READ = 16
"""Of stacks that have been read; what is less stands for none."""
_LATER = 3
"""Drop requests: the thread has woken so often, and looked who holds the GIL."""


def _waiting(tracer: GilAccount) -> Mapping[str, int]:
    """Return what is noted of the only wait, as soon as its holder's stack is."""
    return eventually(
        lambda: next(
            (
                record
                for record in tracer.probe.blame.waiting(tracer.probe.read({}).processes).values()
                if record["holder"] >= _FIRST_READ
            ),
            {},
        )
    )


def _requests(tracer: GilAccount) -> int:
    (seen,) = tracer.observe()
    (gil,) = seen.totals.gils
    return gil.drop_requests


def test_a_wait_behind_a_holder_that_stays_is_not_changed(tracer: GilAccount) -> None:
    """
    However often the thread wakes and asks again: what has not changed is not left out.
    """
    with holder_started() as holder:
        holder.holds()
        tracer.attach(holder.pid)
        before, asked = _waiting(tracer), _requests(tracer)
        eventually(lambda: _requests(tracer) >= asked + _LATER)
        after = _waiting(tracer)
        holder.go_on()

    assert before["wait_started_ns"] == after["wait_started_ns"]
    assert before["version_begin"] == after["version_begin"] == after["version_end"]
    assert before["slice_began_ns"] == after["slice_began_ns"]
