"""A process whose threads have ever new roles, each with a name of eight thousand characters."""

import time
from pathlib import Path

import pytest

from accuracy.truth import spoken_to
from gilscope.series.roles import MOST_ROLES
from support.commands.gilscope import eventually
from support.commands.serve import serving
from support.paths import WORKLOADS

pytestmark = [pytest.mark.live, pytest.mark.beside_others]

_WORKLOAD = WORKLOADS / "many_roles.py"
_TIME, _NUMBER = "gilscope_gil_thread_wait_seconds_total", "gilscope_gil_thread_waits_total"
_MIB = 1 << 20


def _resident_bytes(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise AssertionError(pid)


def test_three_thousand_roles_are_bounded_in_series_size_and_memory() -> None:
    """
    65 series at most, each with a name that can be printed; none falls; memory does not grow.
    """
    command = ["/usr/bin/python3.11", str(_WORKLOAD)]
    with spoken_to(command) as workload, serving("-p", str(workload.pid)) as service:
        eventually(lambda: service.scrape().pids() == {workload.pid})
        sizes, resident = [], []
        counters: dict[str, float] = {}
        for _ in range(6):
            workload.command("500")
            workload.answer()
            # Dead threads are added up when the tables are read.
            text = service.get("/metrics").text
            time.sleep(0.1)
            scrape = service.scrape()
            sizes.append(len(text))
            resident.append(_resident_bytes(service.command.pid))
            roles = [sample.labels["role"] for sample in scrape.samples(_TIME)]
            assert len(roles) <= MOST_ROLES + 1
            assert [] == [role for role in roles if len(role) > 200 or not role.isprintable()]
            later = scrape.counters()
            assert [] == [name for name, value in counters.items() if later.get(name, 0) < value]
            counters = later
        waits = scrape.total(_NUMBER)
        seen = scrape.total("gilscope_gil_wait_seconds_count")

    assert "other" in roles
    # A role is exported once it is known; only threads that have just begun have none.
    assert 0.99 * seen <= waits <= seen
    assert max(sizes) < 250_000
    assert resident[-1] - resident[1] < 8 * _MIB
