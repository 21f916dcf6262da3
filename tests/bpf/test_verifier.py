"""How much of the programs the kernel has to look at before it takes them."""

from collections.abc import Callable
from pathlib import Path

import pytest

from gilscope.bpf.loader import Loading
from gilscope.gil.probes import program as gil_request
from gilscope.locks import program as lock_request
from gilscope.transactions import program as stm_request

pytestmark = pytest.mark.live

# Kernels stop at a million, and older ones look at more of the same program. It is also the longest
# part of a start: 60000 instructions take some 50 ms.
_MOST_LOOKED_AT = 100_000


def _looked_at(fd: int) -> int:
    """Return how many instructions the verifier has followed; the kernel says so since 5.16."""
    lines = Path(f"/proc/self/fdinfo/{fd}").read_text().splitlines()
    (count,) = [line.split()[1] for line in lines if line.startswith("verified_insns")]
    return int(count)


@pytest.mark.parametrize(
    "begin",
    [
        lambda: gil_request.begin_loading(discover=True, timeline=True),
        lambda: gil_request.begin_loading(discover=True, moments=True),
        lock_request.begin_loading,
        stm_request.begin_loading,
    ],
    ids=["gil", "gil-moments", "locks", "stm"],
)
def test_each_program_is_quickly_verified(begin: Callable[[], Loading]) -> None:
    """
    No program has paths that multiply.
    """
    loaded = begin().finish()
    try:
        loaded.programs.load_all()
        looked_at = {name: _looked_at(fd) for name, fd in loaded.programs.items()}
    finally:
        loaded.close()

    assert {} == {name: count for name, count in looked_at.items() if count > _MOST_LOOKED_AT}
