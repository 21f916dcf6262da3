"""Exports who kept whom waiting, and who did not let go of the GIL when asked."""

from collections.abc import Mapping

from gilscope import metrics
from gilscope.blame_account import BlameSeries
from gilscope.collectors.families import Labels, Series

__all__ = ["add_blame"]


def add_blame(
    families: Mapping[metrics.Family, Series], labels: Labels, blame: BlameSeries
) -> None:
    """Add the series of the process with *labels* to *families*."""
    blocked, times = families[metrics.GIL_BLOCKED], families[metrics.GIL_BLOCKED_TIMES]
    for names, ns, count in blame.pairs:
        of_pair = (*labels, *names)
        blocked.add_ns(of_pair, ns)
        times.add(of_pair, count)
    slow, drops = families[metrics.GIL_SLOW_DROP], families[metrics.GIL_SLOW_DROPS]
    for names, ns, count in blame.slow_holders:
        of_holder = (*labels, *names)
        slow.add_ns(of_holder, ns)
        drops.add(of_holder, count)
