"""What holds for every JSON report, whatever was recorded."""

from collections.abc import Mapping
from typing import Any

import pytest

__all__ = ["assert_consistent"]


def assert_consistent(report: Mapping[str, Any]) -> None:
    """Assert that totals, threads, kinds, interpreters and histograms of a report add up."""
    totals, threads, interpreters = (report[key] for key in ("totals", "threads", "interpreters"))
    for key in ("waits", "forced_switches"):
        assert totals[key] == sum(thread[key] for thread in threads)
    for key in ("convoy_waits", "forced_switches", "drop_requests"):
        assert totals[key] == sum(one[key] for one in interpreters)
    causes = [cause for one in interpreters for cause in one["waits"].values()]
    kinds = [kind for thread in threads for kind in thread["kinds"].values()]
    assert totals["waits"] == sum(cause["waits"] for cause in causes)
    assert totals["waits"] == sum(kind["waits"] for kind in kinds)
    assert totals["waits"] == sum(count for _, count in report["histograms"]["wait"])
    for parts in (threads, causes, kinds):
        assert totals["wait_s"] == pytest.approx(sum(part["wait_s"] for part in parts), abs=1e-6)
