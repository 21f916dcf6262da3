"""Wears one `gilscope serve` out for hours, and says whether it grows.

    python tests/faults/soak.py                  # two hours
    python tests/faults/soak.py --seconds 120    # a try

Each minute it notes what the agent takes. It fails where memory or descriptors grow after the first
third, where BPF objects do, where a counter ran back, or where anything else went wrong.
"""

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(_TESTS), str(_TESTS.parent / "agent")]
# Beside this file lie modules with names of other packages.
sys.path = [entry for entry in sys.path if entry != str(_TESTS / "faults")]

from faults.agent_watch import AgentFigures, AgentWatch, with_descendants  # noqa: E402 - as below
from faults.bench import Bench, new_folder  # noqa: E402 - needs the paths
from faults.bpf_objects import objects_of  # noqa: E402 - as above
from faults.churn import Churn  # noqa: E402 - as above
from support.commands.serve import Scrape, Service  # noqa: E402 - as above

_SAMPLES_LEAST = 12
_INTERVAL_S = 60.0
_LOST = "gilscope_lost_events_total"
_MOST_KIB_PER_HOUR = 2_000
_SHORTEST_JUDGED_H = 1.0
"""A shorter soak is judged as if it had lasted so long: allocators round up."""
_MOST_DESCRIPTORS = 16
"""Windows that are open, and processes that are looked at, have some for a moment."""
_BAR = 40


@dataclass(frozen=True, slots=True)
class Sample:
    """What the agent takes at one moment."""

    at_s: float
    figures: AgentFigures
    bpf_objects: int
    page_bytes: int
    lost: float


def main() -> int:
    """Soak; return 0 if all was well, 1 if not."""
    parser = argparse.ArgumentParser(prog="soak", description="Wear one gilscope serve out.")
    parser.add_argument("--seconds", type=float, default=7200.0, help="so long (default: 7200)")
    seconds = parser.parse_args().seconds
    bench = Bench(new_folder(), is_half=False)
    line = ("--match", str(bench.folder), "--stm-log", f"{bench.folder}/*.stm")
    service = bench.serve(*line, "--mode", "auto")
    churn = Churn(bench, service)
    churn.start()
    samples, wrong = _watch(service, seconds, churn)
    churn.stop()
    bench.finish()
    wrong += churn.failures + [str(failed) for failed in bench.failures] + _growth(samples)
    _show(samples)
    turns = ", ".join(f"{count} {name}" for name, count in sorted(churn.turns.items()))
    sys.stdout.write(f"\n{turns}\n")
    for words in wrong:
        sys.stdout.write(f"WRONG: {words}\n")
    sys.stdout.write(f"{'failed' if wrong else 'steady'} after {seconds:.0f} s\n")
    return 1 if wrong else 0


def _watch(service: Service, seconds: float, churn: Churn) -> tuple[list[Sample], list[str]]:
    """Return the samples of so many seconds, and which counters ran back meanwhile."""
    interval_s = min(_INTERVAL_S, seconds / _SAMPLES_LEAST)
    began_s = time.monotonic()
    samples: list[Sample] = []
    wrong: list[str] = []
    counters: dict[str, float] = {}
    while time.monotonic() < began_s + seconds and not churn.failures:
        time.sleep(interval_s)
        if service.command.process.poll() is not None:
            wrong.append(f"serve ended with {service.command.process.returncode}")
            break
        scrape = service.scrape()
        now = scrape.counters()
        fell = [
            name
            for name, value in counters.items()
            if now.get(name, value) < value and churn.renewed not in name
        ]
        wrong += [f"a counter ran back: {name}" for name in fell[:3]]
        counters = now
        samples.append(_sample(service, scrape, time.monotonic() - began_s))
    return samples, wrong


def _sample(service: Service, scrape: Scrape, at_s: float) -> Sample:
    pid = service.command.pid
    held = {each for member in with_descendants(pid) for each in objects_of(member)}
    size = len(service.get("/metrics").text)
    return Sample(at_s, AgentWatch().figures(pid), len(held), size, scrape.total(_LOST))


def _growth(samples: Sequence[Sample]) -> list[str]:
    """Return what grew after the first third."""
    steady = samples[len(samples) // 3 :]
    if len(steady) < _SAMPLES_LEAST // 3:
        return ["too few samples to judge"]
    hours = max(_SHORTEST_JUDGED_H, (steady[-1].at_s - steady[0].at_s) / 3600)
    wrong = []
    for name in ("resident_kib", "private_kib"):
        slope = _slope([(each.at_s, getattr(each.figures, name)) for each in steady])
        grown = slope * (steady[-1].at_s - steady[0].at_s)
        if grown > _MOST_KIB_PER_HOUR * hours:
            wrong.append(f"{name} grew by {grown:.0f} in {hours:.1f} h")
    middle, last = steady[: len(steady) // 2], steady[len(steady) // 2 :]
    for what in ("descriptors", "threads"):
        before, after = (min(getattr(e.figures, what) for e in part) for part in (middle, last))
        if after > before + _MOST_DESCRIPTORS:
            wrong.append(f"{what}: {after}, {before} before")
    before, after = (min(each.bpf_objects for each in part) for part in (middle, last))
    if after > before + _MOST_DESCRIPTORS:
        wrong.append(f"BPF objects: {after}, {before} before")
    return wrong


def _slope(points: Sequence[tuple[float, float]]) -> float:
    """Return the slope of the line that is nearest to *points*."""
    mean_x = sum(x for x, _ in points) / len(points)
    mean_y = sum(y for _, y in points) / len(points)
    below = sum((x - mean_x) ** 2 for x, _ in points)
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / below if below else 0.0


def _show(samples: Sequence[Sample]) -> None:
    sys.stdout.write("   time  private  resident  fds  threads  BPF  /metrics  lost\n")
    most = max((sample.figures.private_kib for sample in samples), default=1)
    for sample in samples:
        figures = sample.figures
        bar = "#" * round(_BAR * figures.private_kib / most)
        sys.stdout.write(
            f"{sample.at_s:6.0f}s {figures.private_kib:7} K {figures.resident_kib:7} K"
            f" {figures.descriptors:4} {figures.threads:8} {sample.bpf_objects:4}"
            f" {sample.page_bytes:9} {sample.lost:5.0f}  {bar}\n"
        )


if __name__ == "__main__":
    sys.exit(main())
