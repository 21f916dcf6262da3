"""What one would use instead of gilscope: how each is started, and what it counted."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

from bench.tool import ToolFailed

__all__ = [
    "bcc_python",
    "bpftrace_command",
    "py_spy",
    "py_spy_command",
    "samples_printed",
    "takes_printed",
    "three_probes_command",
]

_ROOT = Path(__file__).resolve().parents[1]
_SYSTEM_PYTHON = "/usr/bin/python3"
_PY_SPY_VERSION = "0.4.3"
_PY_SPY_RATE = "100"

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
_SAMPLES = re.compile(r"Samples: (\d+)")


def bcc_python() -> str:
    """Return a Python that can import BCC: this one, or else the distribution's."""
    return sys.executable if importlib.util.find_spec("bcc") else _SYSTEM_PYTHON


def three_probes_command(pid: int, library: Path) -> list[str]:
    """Return the command of the plainest BCC program for the GIL."""
    script = Path(__file__).with_name("three_probes.py")
    return [bcc_python(), str(script), str(pid), str(library)]


def bpftrace_command(pid: int, library: Path) -> list[str]:
    """Return the command of the same three probes in bpftrace."""
    program = _BPFTRACE_PROGRAM.format(library=library)
    return ["bpftrace", "-p", str(pid), "-e", program]


def py_spy_command(pid: int, _library: Path) -> list[str]:
    """Return the command that samples who holds the GIL; raises ToolFailed."""
    options = ["--gil", "--rate", _PY_SPY_RATE, "--format", "raw", "--output", "/dev/null"]
    return [str(py_spy()), "record", *options, "--pid", str(pid)]


def takes_printed(output: str) -> int:
    """Return how many takes a tool with three probes printed at its end."""
    takes = _TAKES.search(output)
    return int(takes.group(1)) if takes else 0


def samples_printed(output: str) -> int:
    """Return how many samples py-spy printed at its end."""
    samples = _SAMPLES.search(output)
    return int(samples.group(1)) if samples else 0


def py_spy() -> Path:
    """Return py-spy's program, fetched from PyPI at the first call; raises ToolFailed.

    It is kept apart from the project's own environment, which has no use for it.
    """
    folder = _ROOT / ".cache" / "bench" / f"py-spy-{_PY_SPY_VERSION}"
    program = folder / "bin" / "py-spy"
    if not program.exists():
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
        wanted = ["--upgrade", "--target", str(folder), f"py-spy=={_PY_SPY_VERSION}"]
        done = subprocess.run([*pip, *wanted], check=False, capture_output=True, text=True)
        if done.returncode != 0:
            words = done.stderr.strip().splitlines() or ["it said nothing"]
            raise ToolFailed(f"cannot be installed: {words[-1]}")
    return program
