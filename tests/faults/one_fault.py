"""Plays one fault, in a process of its own that a fault which hangs cannot hold up."""

import contextlib
import ctypes
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import uuid
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

from faults.bench import Bench, new_folder
from faults.registry import Failed, Fault, NotHere, Verdict
from faults.targets import with_variable

__all__ = ["Result", "play", "play_here"]

_RUN = Path(__file__).with_name("run.py")
_MARK = "GILSCOPE_FAULT"
_CLONE_NEWNS = 0x20000
_ABORTED_S = 30.0
_HALF_S = 200.0
"""Half a fault takes seconds. Less than a test may take, so that it can still say what hangs."""


@dataclass(frozen=True, slots=True)
class Result:
    """How a fault has ended."""

    name: str
    verdict: str
    """Empty where it was survived."""
    seen: str
    seconds: float
    not_here: str = ""
    """Why it could not be played; empty where it was."""

    @property
    def is_survived(self) -> bool:
        """Whether it was played and did no harm."""
        return not (self.verdict or self.not_here)


def play(fault: Fault, *, is_half: bool) -> Result:
    """Return how *fault* ends; whatever it leaves behind is ended."""
    mark = uuid.uuid4().hex
    limit_s = min(fault.limit_s, _HALF_S) if is_half else fault.limit_s
    began_s = time.monotonic()
    line = [sys.executable, str(_RUN), "--child", fault.name, *(["--half"] if is_half else [])]
    # Files, not pipes: a process that a fault leaves behind would hold these open.
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        child = subprocess.Popen(
            line,
            stdout=output,
            stderr=errors,
            stdin=subprocess.DEVNULL,
            env={**os.environ, _MARK: mark},
            text=True,
            start_new_session=True,
        )
        is_late = False
        try:
            child.wait(limit_s)
        except subprocess.TimeoutExpired:
            is_late = True
            child.send_signal(signal.SIGABRT)  # its stack goes to standard error
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(_ABORTED_S)
        finally:
            _end_marked(mark)
        said, blamed = (_content(file) for file in (output, errors))
    seconds = time.monotonic() - began_s
    if is_late:
        words = f"not over after {limit_s:.0f} s: {_last_line(blamed)}"
        return Result(fault.name, Verdict.HANGS, words, seconds)
    try:
        values = json.loads(said.strip().rpartition("\n")[2])
    except ValueError:
        words = f"{_last_line(blamed)} (exit code {child.returncode})"
        return Result(fault.name, Verdict.BROKEN, words, seconds)
    return Result(**values)


def play_here(fault: Fault, *, is_half: bool) -> Result:
    """Play *fault* in this process, and return how it ends."""
    if fault.has_own_mounts:
        _unshare_mounts()
    began_s = time.monotonic()
    bench = Bench(new_folder(), is_half)
    # What is written to a relative path is found there.
    os.chdir(bench.folder)
    not_here = ""
    error: BaseException | None = None
    try:
        fault.check(bench)
    except NotHere as reason:
        not_here = str(reason)
    except (subprocess.TimeoutExpired, TimeoutError) as late:
        error = Failed(Verdict.HANGS, _place(late))
    except AssertionError as late:
        # What was waited for has not come.
        error = Failed(Verdict.HANGS, _place(late))
    except Failed as failed:
        error = failed
    except Exception as broken:  # noqa: BLE001 - it is a row of the table too
        error = Failed(Verdict.BROKEN, _place(broken))
    bench.finish(error)
    worst = min(bench.failures, key=lambda each: list(Verdict).index(each.verdict), default=None)
    others = f" (and {len(bench.failures) - 1} more)" if len(bench.failures) > 1 else ""
    return Result(
        fault.name,
        worst.verdict if worst else "",
        worst.seen + others if worst else "",
        round(time.monotonic() - began_s, 1),
        not_here if not worst else "",
    )


def printed(result: Result) -> str:
    """Return what `play` reads."""
    return json.dumps(asdict(result))


def _content(file: IO[str]) -> str:
    file.seek(0)
    return file.read()


def _place(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if "/faults/" in frame.filename]
    where = f"{Path(own[-1].filename).name}:{own[-1].lineno} {own[-1].line}" if own else ""
    return f"{type(error).__name__}: {str(error)[-400:]} at {where}"


def _last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    own = [line for line in lines if "/faults/" in line]
    return " | ".join([*own[:2], *lines[-1:]])[-400:]


def _end_marked(mark: str) -> None:
    for pid in with_variable(_MARK, mark):
        if pid != os.getpid():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue


def _unshare_mounts() -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_CLONE_NEWNS) != 0:
        raise OSError(ctypes.get_errno(), "cannot make a mount namespace")
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)
