"""Measures what 1,000 agents are to one Prometheus, and writes docs/fleet.md.

Real processes are traced by a real `gilscope serve`, in each mode. What it exports in its default
mode is then served as that of many agents, growing as it grew, and a real Prometheus with all rules
scrapes them. With 1,000 that takes more than a quarter of an hour on two processors, and 5 GB
of memory. The raw figures go to .cache/bench.
"""

import argparse
import datetime as dt
import json
import resource
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from http import HTTPStatus
from pathlib import Path

# Run as a script: its own folder is on the path, the checkout and the tests are not.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(1, str(Path(__file__).resolve().parents[1] / "tests"))

from bench.conditions import gilscope_command
from bench.fleet_agents import continued, dumped, series_of
from bench.fleet_page import Fleet, Measured, Mode, page
from bench.fleet_prometheus import Question, Server, configuration, serving, version
from bench.machine import StolenTime, read_machine
from bench.served import Figures, fetch_page
from bench.tool import ToolFailed, tool_environment, tool_started

from accuracy.truth import WorkloadFailed, started
from gilscope.web.compression import compressed
from support.deploy.dashboards import DASHBOARDS, targets, with_values

__all__ = ["main"]

_ROOT = Path(__file__).resolve().parents[1]
_RAW = _ROOT / ".cache" / "bench" / "fleet.json"
_PAGE = _ROOT / "docs" / "fleet.md"
_RULES = (
    *sorted((_ROOT / "dashboards" / "rules").glob("*.yml")),
    _ROOT / "deploy" / "prometheus" / "gilscope-fleet.rules.yml",
)
_KINDS = ("fight", "io", "quiet")
_MODES = ("contention", "auto", "full")
_SERVICES = tuple(f"{kind}.py" for kind in _KINDS)
_PROCESSES = 2
"""Of each service."""
_THREADS = 4
_GROWTH_S = 10.0
_INTERVAL_S = 15
_LOOK_S = 5.0
_MOST_BYTES = 8 << 30
_DESCRIPTORS_EACH = 4
_PEERS = ("bpftrace", "py-spy")
"""Take no part."""

_Seen = tuple[float, Figures]
"""When something was seen, by the monotonic clock, and what."""


def main() -> int:
    """Measure, write the page and the raw figures, and return the exit code."""
    # Agents are ended by SIGINT; what a script has started in its background would ignore it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    options = _parse_options()
    try:
        if options.again:
            fleet = Fleet.read(json.loads(_RAW.read_text()))
        else:
            fleet = _measure(options)
            _RAW.parent.mkdir(parents=True, exist_ok=True)
            _RAW.write_text(json.dumps(asdict(fleet)))
    except (OSError, ValueError, ToolFailed, WorkloadFailed) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    text = page(fleet)
    options.output.write_text(text)
    print(f"{text.partition('## How to size')[0]}\n{options.output} ({_RAW})")
    return 0


def _parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument(
        "--agents", type=int, nargs="+", default=[1000], metavar="N", help="default: 1000"
    )
    parser.add_argument(
        "--seconds", type=int, default=330, help="how long each fleet is scraped (default: 330)"
    )
    parser.add_argument(
        "--again", action="store_true", help="write the page again from the last measurement"
    )
    parser.add_argument("--output", type=Path, default=_PAGE, metavar="FILE")
    options = parser.parse_args()
    if min(options.agents) < 1 or options.seconds < 4 * _INTERVAL_S:
        parser.error(f"at least 1 agent, and {4 * _INTERVAL_S} seconds, which are four scrapes")
    return options


def _measure(options: argparse.Namespace) -> Fleet:
    stolen, began_s = StolenTime(), time.monotonic()
    date = dt.datetime.now(dt.UTC).strftime("%Y-%m-%d %H:%M UTC")
    with tempfile.TemporaryDirectory() as cache:
        pages = {mode: _traced(mode, cache) for mode in _MODES}
    modes = tuple(
        Mode(mode, tuple(series_of(last)), len(last.encode()), _compressed_bytes(last), _SERVICES)
        for mode, (_, last) in pages.items()
    )
    first, last = pages["auto"]
    measured = tuple(
        _scraped(count, dumped(continued(first, last, _GROWTH_S)), options.seconds)
        for count in options.agents
    )
    machine = read_machine([])
    return Fleet(
        rows=(
            ("CPU", f"{machine.cpu}, {machine.cpus} usable"),
            ("memory", f"{machine.memory_bytes / 1e9:.1f} GB"),
            ("kernel", machine.kernel),
            ("system", machine.system),
            *((name, said) for name, said in machine.versions if name not in _PEERS),
            ("Prometheus", measured[0].version),
            ("date", date),
            ("command", shlex.join(["python", "bench/fleet.py", *sys.argv[1:]])),
            ("duration", f"{(time.monotonic() - began_s) / 60:.1f} minutes"),
            ("state", f"{stolen.share():.1%} of the CPU time stolen by the hypervisor meanwhile"),
        ),
        interval_s=_INTERVAL_S,
        modes=modes,
        measured=measured,
    )


def _traced(mode: str, cache: str) -> tuple[str, str]:
    """Return two scrapes of an agent some seconds apart."""
    script = Path(__file__).with_name("scale_target.py")
    with ExitStack() as stack, tempfile.TemporaryDirectory() as folder:
        pids = []
        for kind, name in zip(_KINDS, _SERVICES, strict=True):
            # A service is called by its script.
            own = Path(folder, name)
            own.symlink_to(script)
            arguments = (str(own), kind, "--threads", str(_THREADS))
            workers = [started(["/usr/bin/python3"], *arguments) for _ in range(_PROCESSES)]
            pids += [stack.enter_context(worker).pid for worker in workers]
        wanted = [word for pid in pids for word in ("--pid", str(pid))]
        command = gilscope_command(*wanted, mode=mode)
        with tool_started(command, "Serving ", tool_environment(cache)) as tool:
            # Windows of auto mode come by chance; what has not been seen has no series yet.
            time.sleep(_GROWTH_S)
            first = fetch_page(tool)
            time.sleep(_GROWTH_S)
            return first, fetch_page(tool)


def _compressed_bytes(page: str) -> int:
    """Return how large *page* is as the agent sends it to Prometheus."""
    return len(compressed((HTTPStatus.OK, {}, page.encode()), "gzip")[2])


def _scraped(count: int, exposition: str, seconds: int) -> Measured:
    """Return what *count* agents are to a Prometheus that scrapes them for so long."""
    _allow_descriptors(_DESCRIPTORS_EACH * count)
    with tempfile.TemporaryDirectory() as folder, _agents(exposition, Path(folder)) as agents:
        config = configuration(agents, count, _RULES, _INTERVAL_S)
        with serving(config, Path(folder)) as server:
            began_s = time.monotonic()
            half = _after(server, began_s + seconds / 2)
            last = _after(server, began_s + seconds)
            appended = "prometheus_tsdb_head_samples_appended_total"
            alone = server.group_seconds()
            asked = tuple(server.ask(each, seconds, _INTERVAL_S) for each in _questions())
            return Measured(
                agents=count,
                version=version(last[1]),
                up=server.count("up == 1"),
                head_series=round(last[1].total("prometheus_tsdb_head_series")),
                recorded_series=server.count('{__name__=~"[a-z]+:gilscope_.+"}'),
                service_series=server.count('{__name__=~"service:gilscope_.+"}'),
                samples_per_s=_grown(half, last, appended),
                resident_bytes=round(last[1].total("process_resident_memory_bytes")),
                resident_after_bytes=round(server.figures().total("process_resident_memory_bytes")),
                cpu_share=_grown(half, last, "process_cpu_seconds_total"),
                wal_bytes=sum(path.stat().st_size for path in (server.folder / "wal").glob("0*")),
                samples=round(server.figures().total(appended)),
                groups=tuple(
                    (name, alone.get(name, took_s), took_s)
                    for name, took_s in sorted(server.group_seconds().items())
                ),
                asked=asked,
            )


def _after(server: Server, until_s: float) -> _Seen:
    """Return the time and what Prometheus says of itself then; raises ValueError at 8 GiB."""
    while True:
        figures = server.figures()
        taken = figures.total("process_resident_memory_bytes")
        if taken > _MOST_BYTES:
            raise ValueError(f"Prometheus takes {taken / 1e9:.1f} GB: give fewer --agents")
        if (now_s := time.monotonic()) >= until_s:
            return now_s, figures
        time.sleep(min(_LOOK_S, until_s - now_s))


def _grown(before: _Seen, after: _Seen, name: str) -> float:
    return (after[1].total(name) - before[1].total(name)) / (after[0] - before[0])


@contextmanager
def _agents(exposition: str, folder: Path) -> Iterator[str]:
    """Serve a fleet from a process of its own; yields the address."""
    file = folder / "exposition.json"
    file.write_text(exposition)
    command = [sys.executable, str(Path(__file__).with_name("fleet_agents.py")), str(file)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield f"127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.stdin.close()
            process.wait()


def _questions() -> Sequence[Question]:
    """Return every query of every dashboard, with all chosen."""
    spans = {"__rate_interval": f"{4 * _INTERVAL_S}s", "__range": "5m"}
    return [
        Question(name, panel, with_values(target["expr"], **spans), bool(target["instant"]))
        for name, dashboard in DASHBOARDS.items()
        for panel, target in targets(dashboard)
    ]


def _allow_descriptors(count: int) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, count + 1024)), hard))


if __name__ == "__main__":
    sys.exit(main())
