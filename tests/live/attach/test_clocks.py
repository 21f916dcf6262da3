"""An agent whose clock is not the kernel's: in a time namespace, and under a library that lies."""

import subprocess
from pathlib import Path

import pytest

from accuracy.truth import exact_counts, started
from support.commands.gilscope import gilscope, gilscope_started
from support.commands.json_reports import only_process

pytestmark = [pytest.mark.live, pytest.mark.beside_others]

_PYTHON = "/usr/bin/python3.11"
_LIE = """\
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t clock, struct timespec *now)
{
    int result = syscall(SYS_clock_gettime, clock, now);
    if (clock == CLOCK_MONOTONIC)
        now->tv_sec *= 10;
    now->tv_sec += 31536000;
    return result;
}
"""


@pytest.mark.parametrize("seconds", [100_000, -100])
@pytest.mark.parametrize("mode", ["contention", "full"])
def test_agent_in_a_time_namespace_counts_as_outside(seconds: int, mode: str) -> None:
    """
    Its clock is a day ahead of the kernel's, or behind: times are right to a twentieth.
    """
    unshared = ("unshare", "--time", "--monotonic", str(seconds))
    if subprocess.run([*unshared, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no time namespaces here")
    with started([_PYTHON], "exact_count.py") as workload:
        line = ("record", "-p", str(workload.pid), "--format", "json", "--mode", mode)
        with gilscope_started(*line, wrapper=unshared) as command:
            command.says("Tracing the GIL")
            truth = exact_counts(workload.run())
            command.interrupt()
            report = only_process(command.outcome().output)
    (waiter,) = [each for each in report["threads"] if each["tid"] == truth.waiter.tid]

    assert report["process"]["valid"]
    assert (23, {}) == (waiter["waits"], report["totals"]["lost_events"])
    assert waiter["wait_s"] == pytest.approx(truth.waiter.total.wait_ns / 1e9, rel=0.05)
    assert report["totals"]["wait_s"] < report["duration_s"]
    if mode == "full":
        assert 0 < report["totals"]["hold_s"] <= report["duration_s"]


def test_library_that_lies_about_the_time_is_refused(tmp_path: Path) -> None:
    """
    Times ten, and a year ahead: exit code 6, and what to do, instead of wrong times.
    """
    source, library = tmp_path / "lie.c", tmp_path / "lie.so"
    source.write_text(_LIE)
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    outcome = gilscope(
        "serve", "--listen", "127.0.0.1:0", "--all", extra={"LD_PRELOAD": str(library)}
    )

    assert (6, "") == (outcome.exit_code, outcome.output)
    assert "error: something in this process changes what its clock says" in outcome.messages
    assert "without LD_PRELOAD" in outcome.messages
