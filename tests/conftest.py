"""What all tests share: the rules for live tests, the lists at the end, and the caches."""

import compileall
import importlib.util
import os
import platform
import re
import signal
import tempfile
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from gilscope.bpf.loader import ENVIRONMENT
from gilscope.bpf.syscalls import create_array_map
from support.paths import AGENT

_CACHE = Path(tempfile.gettempdir()) / f"gilscope-tests-cache-{os.getuid()}"
_RERUNS = 2
_MOST_RERUN = 25
"""Live tests that may fail at first. If more do, it is not the machine that was disturbed."""
_PLACE = re.compile(r"\S+\.py:\d+: ")
_MOST_PLACES = 4
_UPROBE_EVENTS = Path("/sys/bus/event_source/devices/uprobe/type")


def pytest_configure(config: pytest.Config) -> None:
    """Let all tests share compiled programs, also with earlier runs, and leave the user's alone."""
    _CACHE.mkdir(mode=0o755, exist_ok=True)
    os.environ["XDG_CACHE_HOME"] = str(_CACHE)
    # Whatever was compiled ahead here, tests are about the sources; GILSCOPE_PROGRAMS=ahead has all
    # of them use what `make programs` has made.
    os.environ.setdefault(ENVIRONMENT, "bcc")
    if not hasattr(config, "workerinput"):
        # The command is started a thousand times. Where PYTHONDONTWRITEBYTECODE is set, each of
        # these would compile its 300 modules anew, which is half of the time of a start.
        compileall.compile_dir(AGENT, quiet=1)
    _let_programs_hear_signals()


def _let_programs_hear_signals() -> None:
    """Let no program inherit that nohup, or a shell's &, has told the tests to ignore a signal."""
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, lambda *_: None)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Make a live test that fails again: its machine may have been taken away while it measured."""
    for item in items:
        if item.get_closest_marker("live") is not None:
            item.add_marker(pytest.mark.flaky(reruns=_RERUNS))


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Fail a run in which many tests had to be made again."""
    if len(_rerun(session.config)) > _MOST_RERUN and exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a live test where it cannot run; fail it where CI promises that it can."""
    if item.get_closest_marker("live") is None:
        return
    reason = _what_is_missing()
    if reason is None:
        return
    if os.environ.get("CI") == "true":
        pytest.fail(f"CI must be able to run live tests, but {reason}", pytrace=False)
    pytest.skip(reason)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """List what was made again, and count the skipped tests by reason, above the closing line."""
    if rerun := _rerun(terminalreporter.config):
        terminalreporter.section(f"made again, of which {_MOST_RERUN} may be")
        for report in rerun:
            terminalreporter.line(f"{report.nodeid}: {_failure(report)}")
            for place in _places(report):
                terminalreporter.line(f"    {place}")
    reasons = Counter(_reason(report) for report in terminalreporter.getreports("skipped"))
    if not reasons:
        return
    terminalreporter.section("skipped, by reason")
    for reason, count in sorted(reasons.items(), key=lambda item: (-item[1], item[0])):
        terminalreporter.line(f"{count:5}  {reason}")


def _rerun(config: pytest.Config) -> list[pytest.TestReport]:
    """Return why tests were made again: one report each time."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None:
        return []  # in one of several processes, whose reports another one counts
    assert isinstance(reporter, pytest.TerminalReporter)
    reports: list[pytest.TestReport] = reporter.getreports("rerun")
    return reports


def _failure(report: pytest.TestReport) -> str:
    marked = (line for line in report.longreprtext.splitlines() if line.startswith("E "))
    return next(marked, "E").removeprefix("E").strip()


def _places(report: pytest.TestReport) -> list[str]:
    """Return the calls that led to where it failed, the last ones: what has hung says no more."""
    calls = [line for line in report.longreprtext.splitlines() if _PLACE.match(line)]
    return calls[-_MOST_PLACES:]


def _reason(report: pytest.TestReport) -> str:
    if isinstance(report.longrepr, tuple):
        return report.longrepr[2].removeprefix("Skipped: ")
    return str(report.longrepr)


@cache
def _what_is_missing() -> str | None:
    """Return why probes cannot be attached here, or None if they can."""
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        return f"live tests know Linux on x86_64, not {platform.system()} on {platform.machine()}"
    if not _UPROBE_EVENTS.exists():
        return f"this kernel has no uprobe events ({_UPROBE_EVENTS})"
    if os.environ[ENVIRONMENT] != "ahead" and importlib.util.find_spec("bcc") is None:
        return "BCC is not importable (apt install python3-bpfcc)"
    return _bpf_refusal()


def _bpf_refusal() -> str | None:
    # The kernel is asked, not the user id: a container's root may lack the capability.
    try:
        fd = create_array_map()
    except OSError as error:
        return f"the kernel refuses BPF: {error.strerror}"
    os.close(fd)
    return None
