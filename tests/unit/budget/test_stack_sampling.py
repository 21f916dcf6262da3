"""Which share of its waits a process has the stacks read."""

import pytest

from gilscope.budget.stack_sampling import StackSampling
from gilscope.budget.token_bucket import Budget, Usage

_S = 1_000_000_000
_MS = 1_000_000

_BUDGET = Budget(0.01)
_SECOND_MS = 10
"""What a second of one core brings in."""


class _Process:
    """A process that uses one core, and waits as often as a test says."""

    def __init__(self, cores: float = 1.0) -> None:
        self._cores = cores
        self._usage = Usage(0, 0, 0, 0)
        self.sampling = StackSampling(_BUDGET, self._usage)

    def run(
        self, seconds: int, *, traps_ms: float, walks_ms: float, windows_ms: float = 0
    ) -> float:
        """Return what stacks cost in that time; all costs are per second, stacks' for all waits."""
        before_ns = self._usage.walking_ns
        for _ in range(seconds):
            walking_ns = int(self.sampling.share * walks_ms * _MS)
            window_ns = int(windows_ms * _MS)
            cost_ns = int(traps_ms * _MS) + walking_ns + window_ns
            self._usage = Usage(
                at_ns=self._usage.at_ns + _S,
                cpu_ns=self._usage.cpu_ns + int(self._cores * _S) + cost_ns,
                cost_ns=self._usage.cost_ns + cost_ns,
                window_cost_ns=self._usage.window_cost_ns + window_ns,
                walking_ns=self._usage.walking_ns + walking_ns,
            )
            self.sampling.look(self._usage)
        return (self._usage.walking_ns - before_ns) / _MS


def test_all_stacks_are_read_as_long_as_they_are_cheap() -> None:
    """
    Up to half of what the traps leave of the budget.
    """
    process = _Process()
    process.run(60, traps_ms=4, walks_ms=(_SECOND_MS - 4) / 2)

    assert 1.0 == process.sampling.share


@pytest.mark.parametrize(
    ("traps_ms", "walks_ms", "windows_ms", "expected"),
    [
        # Half of what is left of 10 ms, of 24 ms.
        (2, 24, 0, 4 / 24),
        # Windows get the other half, and take nothing away.
        (2, 24, 4, 4 / 24),
        # Nothing is left but the least, a tenth of the budget.
        (29, 24, 0, 1 / 24),
        (9.9, 24, 0, 1 / 24),
    ],
)
def test_share_of_dear_stacks(
    traps_ms: float, walks_ms: float, windows_ms: float, expected: float
) -> None:
    """
    So many are read as half of what is left pays for, from the first second on.
    """
    process = _Process()
    process.run(1, traps_ms=traps_ms, walks_ms=walks_ms, windows_ms=windows_ms)

    assert expected == pytest.approx(process.sampling.share, rel=1e-6)
    process.run(60, traps_ms=traps_ms, walks_ms=walks_ms, windows_ms=windows_ms)
    assert expected == pytest.approx(process.sampling.share, rel=1e-6)


def test_process_that_uses_little_is_granted_the_least() -> None:
    """
    As if it used a tenth of a core.
    """
    process = _Process(cores=0.001)
    process.run(60, traps_ms=0, walks_ms=1)

    # A tenth of 10 ms, and half of that.
    assert 0.5 == pytest.approx(process.sampling.share, rel=1e-6)


def test_share_rises_slowly_and_falls_at_once() -> None:
    """
    By half of itself every 4 s, where there is nothing to read too.
    """
    process = _Process()
    process.run(1, traps_ms=2, walks_ms=24)
    process.run(4, traps_ms=0, walks_ms=0)
    assert 1.5 * 4 / 24 == pytest.approx(process.sampling.share)
    process.run(20, traps_ms=0, walks_ms=0)
    assert 1.0 == process.sampling.share

    process.run(4, traps_ms=2, walks_ms=24)
    assert 4 / 24 == pytest.approx(process.sampling.share)


def test_share_never_becomes_nothing() -> None:
    """
    From a thousandth it can rise again in time.
    """
    process = _Process()
    process.run(8, traps_ms=0, walks_ms=10_000_000)

    assert 0.001 == process.sampling.share


def test_nothing_is_decided_before_it_is_due() -> None:
    """
    A first time after a second, then every four.
    """
    sampling = StackSampling(_BUDGET, Usage(0, 0, 0, 0))
    dear = Usage(_S - 1, _S, _S // 2, 0, _S // 2)

    assert (False, 1.0) == (sampling.look(dear), sampling.share)
    assert sampling.look(Usage(_S, _S, _S // 2, 0, _S // 2))
    assert 5 * _S == sampling.due_ns


def test_a_process_that_does_not_wait_is_looked_at_less_often() -> None:
    """
    But for a while only: what it is granted for its time adds up, and could be spent at once.
    """
    sampling = StackSampling(_BUDGET, Usage(0, 0, 0, 0))
    due_s = []
    while sampling.put_off(sampling.due_ns):
        due_s.append(sampling.due_ns // _S)

    assert [5, 9, 13, 17, 21] == due_s
    assert not sampling.look(Usage(20 * _S, 20 * _S, 0, 0))
    assert sampling.look(Usage(21 * _S, 21 * _S, _S, 0, _S))
    assert not sampling.put_off(22 * _S)
