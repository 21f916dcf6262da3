"""What the workloads run under: nothing, gilscope, and what one would use instead of it."""

import importlib.util
import re
import sys
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bench.tool import Tool, ToolFailed

__all__ = [
    "AGAIN",
    "BASELINE",
    "BPFTRACE",
    "CONDITIONS",
    "GILSCOPE",
    "THREE_PROBES",
    "Condition",
    "Target",
    "bcc_python",
    "gilscope_command",
]

_SYSTEM_PYTHON = "/usr/bin/python3"
_SCRAPE_WITHIN_S = 10.0
_WAITS = re.compile(r"^gilscope_gil_wait_seconds_count\{.*\} (\S+)$", re.MULTILINE)
_VALID = re.compile(r"^gilscope_probe_valid\{.*\} 1(?:\.0)?$", re.MULTILINE)
_URL = re.compile(r"http://\S+/metrics")

# Attaches all probes before the first interval ends; the count of takes would show if it did not.
_BPFTRACE_PROGRAM = """\
uprobe:{library}:take_gil {{ @asked[tid] = nsecs; }}
uretprobe:{library}:take_gil /@asked[tid]/ {{
    @takes = count(); @wait_ns[tid] = sum(nsecs - @asked[tid]); @taken[tid] = nsecs;
}}
uprobe:{library}:drop_gil /@taken[tid]/ {{ @hold_ns[tid] = sum(nsecs - @taken[tid]); }}
interval:ms:100 /@ready == 0/ {{ @ready = 1; printf("Tracing\\n"); }}
"""
# As bpftrace prints it, or as JSON.
_TAKES = re.compile(r'^(?:@takes|\{"takes"): (\d+)', re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Target:
    """A process to trace."""

    pid: int
    library: Path
    """The file with the code of the GIL."""


@dataclass(frozen=True, slots=True)
class Condition:
    """One row of the tables."""

    key: str
    title: str
    command: Callable[[Target], list[str]] | None = None
    """None: nothing traces."""
    marker: str = ""
    """What it prints when its probes are in place."""
    scrape: Callable[[Tool], str] | None = None
    """Asks the running tool for its figures; None: it prints them when it ends."""
    count: Callable[[str], int] = len
    """Returns from the figures how many events the tool saw; raises ToolFailed."""
    sees_every_take: bool = False
    """Else only those that had to wait."""


def gilscope_command(target: Target) -> list[str]:
    """Return the command that serves figures about *target*."""
    options = ["--mode", "contention", "-p", str(target.pid), "--listen", "127.0.0.1:0"]
    return [sys.executable, "-m", "gilscope", "serve", *options]


def bcc_python() -> str:
    """Return a Python that can import BCC: this one, or else the distribution's."""
    return sys.executable if importlib.util.find_spec("bcc") else _SYSTEM_PYTHON


def _three_probes_command(target: Target) -> list[str]:
    script = Path(__file__).with_name("three_probes.py")
    return [bcc_python(), str(script), str(target.pid), str(target.library)]


def _bpftrace_command(target: Target) -> list[str]:
    program = _BPFTRACE_PROGRAM.format(library=target.library)
    return ["bpftrace", "-p", str(target.pid), "-e", program]


def _scrape(tool: Tool) -> str:
    url = _URL.search(tool.output)
    if url is None:
        raise ToolFailed("did not say where it serves")
    # S310: the pattern begins with http.
    with urllib.request.urlopen(url.group(), timeout=_SCRAPE_WITHIN_S) as answer:  # noqa: S310
        text: str = answer.read().decode()
    return text


def _waits_scraped(page: str) -> int:
    if _VALID.search(page) is None:
        raise ToolFailed("traced nothing: gilscope_probe_valid is not 1")
    return round(sum(map(float, _WAITS.findall(page))))


def _takes_printed(output: str) -> int:
    takes = _TAKES.search(output)
    return int(takes.group(1)) if takes else 0


BASELINE = Condition("none", "nothing")
AGAIN = Condition("none-again", "nothing, again (the noise floor)")
GILSCOPE = Condition(
    "gilscope",
    "gilscope, contention mode",
    gilscope_command,
    "Serving ",
    _scrape,
    _waits_scraped,
)
THREE_PROBES = Condition(
    "three-probes",
    "BCC, three probes",
    _three_probes_command,
    "Tracing",
    None,
    _takes_printed,
    sees_every_take=True,
)
BPFTRACE = Condition(
    "bpftrace",
    "bpftrace, the same three",
    _bpftrace_command,
    "Tracing",
    None,
    _takes_printed,
    sees_every_take=True,
)
CONDITIONS = (BASELINE, AGAIN, GILSCOPE, THREE_PROBES, BPFTRACE)
