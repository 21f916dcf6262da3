"""Measures what it costs the probes to tell which request has waited.

A thread comes back from blocking calls beside one that computes. It publishes nothing; or has a
tracing library loaded and no request; or is within a request; or in one with a route. The kernel
counts for how long the probes run, by its own clock: printed is that time for each wait, from the
least to the most of some rounds, which come by turns. Needs root, gcc and Linux 5.1.
"""

import argparse
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

# Run as a script: its own folder is on the path, the checkout and the tests are not.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(1, str(Path(__file__).resolve().parents[1] / "tests"))

from accuracy.truth import Workload, spoken_to
from support.commands.gilscope import eventually
from support.commands.json_reports import only_process
from support.commands.serve import Scrape, Service, serving
from support.paths import ROOT

__all__ = ["main"]

_PYTHON = "/usr/bin/python3"
_STATISTICS = Path("/proc/sys/kernel/bpf_stats_enabled")
_FORMS = {
    "nothing published": "none",
    "a library, no request": "loaded",
    "within a request": "request",
    "a request with a route": "route",
}
_MEASURED_S = 3.0
_LINES = """
import ctypes, json, os, subprocess, sys, threading, time
folder, sources, form = sys.argv[1:]
sys.path.insert(0, sources)
from process_context import publish_process_context

def come_back(library):
    if form in ("request", "route"):
        library.publish(0xA1, 1, 1)
        if form == "route":
            library.add_attribute(0, b"/checkout")
    while True:
        time.sleep(0.0002)

def compute():
    while True:
        sum(range(1000))

sys.setswitchinterval(0.0005)
library = None
if form != "none":
    path = os.path.join(folder, form + ".so")
    source = os.path.join(sources, "context_publisher.c")
    subprocess.run(["gcc", "-O1", "-shared", "-fPIC", "-o", path, source], check=True)
    library = ctypes.PyDLL(path)
    context = publish_process_context("shop", ("http.route",))
threading.Thread(target=come_back, args=(library,), daemon=True).start()
threading.Thread(target=compute, daemon=True).start()
print(json.dumps({"ready": True, "pid": os.getpid()}), flush=True)
sys.stdin.readline()
os._exit(0)
"""


def main() -> int:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=5, metavar="N")
    rounds: int = options.parse_args().rounds
    print(f"Nanoseconds that the probes run for a wait, the median of {rounds} rounds")
    with _kernel_counts():
        for name, took_ns in _measured(rounds).items():
            low, middle, high = min(took_ns), statistics.median(took_ns), max(took_ns)
            print(f"  {name:24} {middle:6.0f}  from {low:.0f} to {high:.0f}")
    return 0


@contextmanager
def _kernel_counts() -> Iterator[None]:
    """Let the kernel count how long BPF programs run, and leave the setting as it was."""
    before = _STATISTICS.read_text()
    # Else it would end at once, and leave the kernel counting.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    _STATISTICS.write_text("1")
    try:
        yield
    finally:
        _STATISTICS.write_text(before)


def _measured(rounds: int) -> dict[str, list[float]]:
    took_ns: dict[str, list[float]] = {name: [] for name in _FORMS}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(rounds):
            for name, form in _FORMS.items():
                took_ns[name].append(_round_ns(folder, form))
    return took_ns


def _round_ns(folder: str, form: str) -> float:
    """Return for how long the probes ran for each wait."""
    sources = str(ROOT / "tests" / "workloads")
    with ExitStack() as held:
        program = held.enter_context(spoken_to([_PYTHON, "-c", _LINES, folder, sources, form]))
        service = held.enter_context(serving("--mode", "contention", "-p", str(program.pid)))
        _await_traced(service, program, has_request=form in ("request", "route"))
        before = service.scrape()
        time.sleep(_MEASURED_S)
        after = service.scrape()
    waits = _since(before, after, "gilscope_gil_wait_seconds_count")
    return 1e9 * _since(before, after, "gilscope_agent_bpf_run_seconds_total") / waits


def _await_traced(service: Service, program: Workload, *, has_request: bool) -> None:
    """Return once its waits are counted, and their request where it has one."""

    def is_told() -> bool:
        report = only_process(service.get("/report?form=json&last=60").text)
        return bool(report["totals"]["waits"]) and (not has_request or bool(report["traces"]))

    assert program.pid
    eventually(is_told)


def _since(before: Scrape, after: Scrape, name: str) -> float:
    return after.total(name) - before.total(name)


if __name__ == "__main__":
    sys.exit(main())
