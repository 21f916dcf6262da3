"""What a holder did from one sample to the next."""

import pytest

from gilscope.gil.tracing.holders.gap import Gap, Seen, gap_between

_BEFORE = Seen(is_asleep=False, cpu_ns=100, queued_ns=50)


@pytest.mark.parametrize(
    ("now", "is_off_cpu", "expected"),
    [
        (Seen(is_asleep=False, cpu_ns=107, queued_ns=51), False, Gap(9, 0, 1)),
        (Seen(is_asleep=False, cpu_ns=102, queued_ns=53), True, Gap(2, 0, 8)),
        (Seen(is_asleep=True, cpu_ns=101, queued_ns=52), False, Gap(1, 7, 2)),
        (Seen(is_asleep=False, cpu_ns=100, queued_ns=80), False, Gap(0, 0, 10)),
        (Seen(is_asleep=False, cpu_ns=130, queued_ns=54), False, Gap(6, 0, 4)),
        (Seen(is_asleep=False, cpu_ns=90, queued_ns=40), False, Gap(10, 0, 0)),
    ],
    ids=["runs", "waits for a CPU", "sleeps", "queued before", "ran before", "other thread"],
)
def test_the_parts_add_up_to_the_gap(*, now: Seen, is_off_cpu: bool, expected: Gap) -> None:
    """
    What the kernel has counted comes first; what is left is as the thread was found.
    """
    assert expected == gap_between(_BEFORE, now, 10, is_off_cpu=is_off_cpu)
