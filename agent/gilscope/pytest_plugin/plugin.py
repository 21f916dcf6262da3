"""A plugin of pytest: what tests lose waiting for the GIL, and budgets that they must keep to.

Without ``--gilscope`` it does nothing and imports next to nothing.
"""

import warnings
from collections.abc import Generator

import pytest

from gilscope.pytest_plugin.figures import Budget, Loss, Sums, budget_of, loss_between
from gilscope.pytest_plugin.own_tracer import CannotTrace, OwnTracer
from gilscope.text.units import counted, short_duration

__all__ = ["pytest_addoption", "pytest_configure"]

_MARKER = (
    'gil_budget(wait="100ms", share=0.2): with --gilscope, fail if the threads of the process lose '
    "more than that waiting for the GIL during the test; share is of its duration"
)
_WAIT, _WAITS, _DURATION, _COSTLIEST = "gil_wait_ns", "gil_waits", "gil_ns", "gil_costliest"
"""Properties of a test, by which its figures come to a report, also from another process."""
_MOST_TOLD = 10
_LEAST_NS = 1_000_000


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare ``--gilscope``."""
    parser.getgroup("gilscope").addoption(
        "--gilscope",
        action="store_true",
        help="trace this process from outside, apply gil_budget markers, and tell the tests that "
        "lost the most waiting for the GIL (needs root, or what `gilscope doctor` says)",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Declare the marker, and begin where it is wanted."""
    config.addinivalue_line("markers", _MARKER)
    if config.getoption("gilscope") and not config.getoption("collectonly"):
        config.pluginmanager.register(_Told(), "gilscope-summary")
        config.pluginmanager.register(_Tracing(_runs_tests(config)), "gilscope-tracing")


def _runs_tests(config: pytest.Config) -> bool:
    """Return whether tests run in this process, and not in workers of pytest-xdist."""
    is_worker = hasattr(config, "workerinput")
    return is_worker or config.getoption("dist", "no") in {None, "no"}


class _Tracing:
    """Asks before and after each test what has been lost."""

    def __init__(self, runs_tests: bool) -> None:  # noqa: FBT001 - it is made once
        self._runs_tests = runs_tests
        self._tracer: OwnTracer | None = None
        self._why_not = "--gilscope: this process is not traced"

    def pytest_sessionstart(self) -> None:
        """Begin to trace this process."""
        try:
            self._tracer = OwnTracer()
        except CannotTrace as error:
            raise pytest.UsageError(f"--gilscope: {error}") from error
        if not self._runs_tests:
            # Tried here, because a worker cannot say what is missing in a line.
            self._close()

    def pytest_sessionfinish(self) -> None:
        """End it."""
        self._close()

    # Innermost: what is around a test is not what it loses.
    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        """Note what *item* loses, and fail it where that is more than its budget."""
        budget = _budget(item)
        before = self._sums()
        try:
            result = yield
        finally:
            after = self._sums()
            loss = None if before is None or after is None else loss_between(before, after)
            if loss is not None:
                item.user_properties += _properties(loss)
        if budget is not None:
            # A budget that cannot be checked is not kept.
            passed = self._why_not if loss is None else budget.passed_by(loss)
            if passed:
                pytest.fail(passed, pytrace=False)
        return result

    def _sums(self) -> Sums | None:
        if self._tracer is None:
            return None
        try:
            return self._tracer.sums()
        except CannotTrace as error:
            self._close()
            self._why_not = f"--gilscope: {error}"
            warnings.warn(self._why_not, pytest.PytestWarning, stacklevel=1)
            return None

    def _close(self) -> None:
        if self._tracer is not None:
            self._tracer.close()
            self._tracer = None


def _budget(item: pytest.Item) -> Budget | None:
    marker = item.get_closest_marker("gil_budget")
    if marker is None:
        return None
    try:
        return budget_of(*marker.args, **marker.kwargs)
    except ValueError as error:
        words = str(error)
    pytest.fail(words, pytrace=False)


def _properties(loss: Loss) -> list[tuple[str, object]]:
    return [
        (_WAIT, loss.wait_ns),
        (_WAITS, loss.waits),
        (_DURATION, loss.duration_ns),
        (_COSTLIEST, loss.costliest),
    ]


class _Told:
    """Tells at the end which tests lost the most, wherever they ran."""

    def __init__(self) -> None:
        self._losses: list[tuple[str, Loss]] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep what the properties of a test say."""
        known = dict(report.user_properties)
        if report.when == "call" and _WAIT in known:
            wait_ns, waits, ns = (int(str(known[name])) for name in (_WAIT, _WAITS, _DURATION))
            place = str(known[_COSTLIEST])
            loss = Loss(wait_ns, waits, ns, {place: wait_ns} if place else {})
            self._losses.append((report.nodeid, loss))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the costliest tests."""
        told = terminalreporter
        if not self._losses:
            return
        told.section("time lost waiting for the GIL (gilscope)")
        costly = sorted(self._losses, key=lambda each: -each[1].wait_ns)
        shown = [each for each in costly if each[1].wait_ns >= _LEAST_NS][:_MOST_TOLD]
        for test, loss in shown:
            behind = f"; costliest: {loss.costliest}" if loss.costliest else ""
            told.line(f"{test}: {loss}{behind}")
        others = [loss.wait_ns for _, loss in costly[len(shown) :]]
        if others:
            rest = counted(len(others), "other test" if shown else "test")
            told.line(f"{rest}: {short_duration(sum(others))}")
