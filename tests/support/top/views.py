"""Made-up looks at processes, for the tests of the live view."""

import threading
from collections.abc import Iterable
from dataclasses import replace

from gilscope.exporter.source import Source
from gilscope.model.agent import AgentState
from gilscope.model.gil import GilObservation, Refusal
from gilscope.model.locks import LockObservation
from gilscope.model.observation import Observation
from gilscope.model.transactions import StmObservation
from gilscope.top.layout import Line, Row
from support.recordings.gil import MS, PROCESS, full_mode, observation, with_edges

__all__ = ["AGENT", "BUSY", "IDLE", "INVALID", "REFUSED", "Made", "text", "texts"]

AGENT = AgentState(
    running_ns=10_000 * MS,
    cpu_ns=50 * MS,
    sampling_cpu_ns=MS,
    resident_bytes=60_000_000,
    private_bytes=38_000_000,
    traps=100,
    trap_costs_ns={},
    is_measured=True,
    tables=(),
    program_runs=(),
    bpf_misses=None,
)

BUSY: GilObservation = replace(
    full_mode().observation,
    totals=replace(full_mode().observation.totals, edges=with_edges().observation.totals.edges),
)
"""Two seconds of a convoy, in full mode and with the places of all waits."""
IDLE = replace(observation(), process=replace(PROCESS, name="idle.py", pid=1234567))
INVALID = replace(
    observation(),
    process=replace(PROCESS, name="bad.py", pid=77),
    invalid="what the probes saw is not a GIL's (invalid_mutex)",
)
REFUSED = Refusal(99, "old.py", "CPython 3.5 is too old", "gilscope knows CPython 3.6 to 3.15.")


class Made:
    """A source that says what it is told to say, at once or when it is allowed to."""

    def __init__(
        self,
        *observations: GilObservation,
        refusals: Iterable[Refusal] = (),
        transactions: Iterable[StmObservation] = (),
        locks: Iterable[LockObservation] = (),
        permits: threading.Semaphore | None = None,
    ) -> None:
        """Say *observations*; with *permits*, one of them is taken for each time."""
        self.observations = list(observations)
        self.refused = list(refusals)
        self.transactions = list(transactions)
        self.locks = list(locks)
        self.failure: Exception | None = None
        self.permits = permits
        self.asked = threading.Semaphore(0)
        """Released each time that somebody asks."""

    @property
    def source(self) -> Source:
        """It as a source."""
        return Source(self.agent_state, self.observe, self.refusals)

    def observe(self) -> list[Observation]:
        """Return what there is, or fail as it was told to."""
        self.asked.release()
        if self.permits is not None:
            self.permits.acquire()
        if self.failure is not None:
            raise self.failure
        return [
            *(Observation(gil=seen) for seen in self.observations),
            *(Observation(transactions=seen) for seen in self.transactions),
            *(Observation(locks=seen) for seen in self.locks),
        ]

    def refusals(self) -> list[Refusal]:
        """Return what was refused."""
        return self.refused

    def agent_state(self) -> AgentState:
        """Return the state of the agent."""
        return AGENT


def text(line: Line) -> str:
    """Return what a line says, without blanks at its end."""
    return "".join(span.text for span in line).rstrip()


def texts(rows: Iterable[Row]) -> list[str]:
    """Return what the lines of *rows* say."""
    return [text(line) for row in rows for line in row.lines]
