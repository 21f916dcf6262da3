"""What the probes are told of where requests are published."""

import pytest

from gilscope.gil.totals.raw import RawProcess
from gilscope.gil.tracing.requests import PublishedRequests
from gilscope.model.stack import UNKNOWN_STACK
from gilscope.process.files.thread_variables import VariablePlace
from gilscope.process.published.process_context import ProcessContext

_PLACE = VariablePlace(offset=-8, module=0, entry_size=16, length_at=-16)


@pytest.mark.parametrize(
    ("context", "key"),
    [
        (None, 0),
        (ProcessContext("shop", ()), 0),
        (ProcessContext("shop", ("http.route",)), 1),
        (ProcessContext(None, ("thread.name", "http.route")), 2),
    ],
)
def test_probes_know_the_attribute_with_the_route(context: ProcessContext | None, key: int) -> None:
    """
    By one more than its number.
    """
    place = PublishedRequests(place=_PLACE, context=context).place_for_probes()

    assert place is not None
    assert key == place["route_key"]


def test_where_nothing_is_published_nothing_is_known() -> None:
    """
    Neither requests nor a service.
    """
    requests = PublishedRequests()

    assert requests.place_for_probes() is None
    assert requests.service is None
    assert requests.traces(RawProcess(), lambda _: UNKNOWN_STACK) is None
