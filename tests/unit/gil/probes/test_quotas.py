"""What the probes are told of what has left their tables."""

from typing import cast

from gilscope.bpf.map import Table
from gilscope.gil.abi import Quota
from gilscope.gil.probes.quotas import Quotas
from gilscope.values import Record


class _Returned:
    """The probes' array, by slot."""

    def __init__(self) -> None:
        self.entries: dict[int, tuple[int, ...]] = {}

    def put(self, key: Record, value: Record) -> None:
        """Store what is given back to the process at a slot."""
        self.entries[key["value"]] = value["entries"]


def test_each_process_is_given_back_its_own() -> None:
    """
    By kind, added up; who begins anew begins at zero, and a process that has gone gets nothing.
    """
    returned = _Returned()
    quotas = Quotas(cast("Table", returned))
    quotas.begin(11, 1)
    quotas.begin(12, 2)

    quotas.give_back(11, Quota.THREADS, 2)
    quotas.give_back(11, Quota.THREADS, 3)
    quotas.give_back(12, Quota.EDGES, 7)
    quotas.give_back(13, Quota.EDGES, 7)
    assert {1: (5, 0, 0, 0, 0, 0, 0, 0), 2: (0, 0, 0, 0, 7, 0, 0, 0)} == returned.entries

    quotas.forget(12)
    quotas.begin(14, 2)
    quotas.give_back(12, Quota.EDGES, 1)
    assert (0,) * 8 == returned.entries[2]


def test_number_wraps_as_in_the_kernel() -> None:
    """
    What is compared there is the difference of two numbers of 32 bits.
    """
    returned = _Returned()
    quotas = Quotas(cast("Table", returned))
    quotas.begin(11, 1)
    quotas.give_back(11, Quota.STACKS, (1 << 32) - 1)
    quotas.give_back(11, Quota.STACKS, 3)

    assert 2 == returned.entries[1][Quota.STACKS]
