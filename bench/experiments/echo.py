"""Measures the echo beside computing threads, which three experiments have in common."""

from contextlib import nullcontext
from dataclasses import dataclass

from bench.experiments.cells import CellFailed, Figures
from bench.experiments.processes import OWN, client_cpus, program, set_of
from bench.experiments.runtimes import Runtime, find
from bench.experiments.tracing import Report, recorded

__all__ = ["BYTES", "MESSAGES", "Echo"]

BYTES = 8192
MESSAGES = 1280
"""As many as the source's, 10 MB in all."""
_ECHO = "echo_server"
_WANTS_AN_ECHO = 2


@dataclass(frozen=True, slots=True)
class Echo:
    """A server with *spin* computing threads, and how it is looked at."""

    runtime: Runtime
    cpus: str
    spin: int
    mode: str = ""
    """Of gilscope, empty for untraced."""
    arm: str = "none"
    """See the program."""
    interval_ms: float = 0.0
    """The switch interval; 0 for the usual one."""
    limit_s: float = 2.0
    """After which the client stops."""

    def measure(self) -> Figures:
        """Return what a client saw, and gilscope of the server.

        Raises CellFailed where gilscope counts what cannot be.
        """
        interpreter, mode = find(self.runtime), self.mode
        words = (self.spin, self.arm, self.interval_ms)
        with (
            program(interpreter, "udp_echo.py", *words, cpus=set_of(self.cpus)) as server,
            recorded(server.pid, mode=mode) if mode else nullcontext(None) as report,
        ):
            before = server.ask("tasks")
            sent = (server.first["port"], MESSAGES, self.limit_s)
            with program(OWN, "udp_client.py", *sent, cpus=client_cpus(self.cpus)) as client:
                figures = dict(client.first)
            after = server.ask("tasks")
        took_s = after["at_s"] - before["at_s"]
        figures["tasks_per_s"] = (after["tasks"] - before["tasks"]) / took_s
        if report is not None:
            figures |= _seen(report, figures["echoes"], is_alone=not self.spin)
        return figures


def _seen(report: Report, echoes: int, *, is_alone: bool) -> Figures:
    waits = report.waits(_ECHO)
    if waits > _WANTS_AN_ECHO * echoes + _WANTS_AN_ECHO or (is_alone and waits):
        raise CellFailed(f"{waits} waits of the echo thread in {echoes} echoes")
    totals = report.process["totals"]
    holds = sum(each["holds"] or 0 for each in report.threads(_ECHO))
    return {
        "waits": waits,
        "wait_s": report.wait_s(_ECHO),
        "mean_wait_ms": 1000 * report.wait_s(_ECHO) / waits if waits else None,
        "failed_wakeups": totals["failed_wakeups"],
        "convoy_waits": report.waits(_ECHO, "GIL_CONVOY"),
        "convoy_s": report.wait_s(_ECHO, "GIL_CONVOY"),
        "held_by_spin": report.held_by("spin", "GIL_CONVOY"),
        "takes": holds or None,
        "forced_switches": totals["forced_switches"],
        "overhead_s": totals["overhead_s"],
    }
