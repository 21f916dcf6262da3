"""A scrape of made-up observations, read back as Prometheus would."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from prometheus_client import Metric
from prometheus_client.openmetrics import parser as openmetrics
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from gilscope.exporter.collector import AgentCollector
from gilscope.exporter.exposition import encode
from gilscope.exporter.source import Source
from gilscope.model.agent import AgentState, ProgramRuns, TableState
from gilscope.model.gil import GilObservation, Refusal
from gilscope.model.locks import LockObservation
from gilscope.model.observation import Observation
from gilscope.model.transactions import StmObservation

__all__ = ["AGENT", "OPEN_METRICS", "PLAIN", "Fixed", "Scrape", "parse", "read", "scrape"]

PLAIN = "text/plain; version=0.0.4; charset=utf-8"
OPEN_METRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"

AGENT = AgentState(
    running_ns=1_000_000_000_000,
    cpu_ns=3_000_000_000,
    sampling_cpu_ns=300_000_000,
    resident_bytes=48_000_000,
    private_bytes=29_500_000,
    traps=5000,
    trap_costs_ns={"full": 540.0, "stepped": 8900.0, "contention": 700.0},
    is_measured=True,
    tables=(
        TableState("threads", entries=600, capacity=65536, kernel_bytes=1_000_000),
        TableState("drop_requests", entries=None, capacity=8192, kernel_bytes=None),
        TableState("notices", entries=None, capacity=None, kernel_bytes=275_784),
    ),
    program_runs=(ProgramRuns("on_release", run_time_ns=1_500_000, runs=4000),),
    bpf_misses=0,
    captures={"written": 1, "suppressed": 3, "failed": 0},
)

_OF_PROCESS = {"process": "app.py", "pid": "4711", "container_id": "", "pod_uid": ""}


@dataclass
class Fixed:
    """A source that always sees the same."""

    observations: Sequence[GilObservation] = ()
    agent: AgentState = AGENT
    transactions: Sequence[StmObservation] = ()
    locks: Sequence[LockObservation] = ()

    @property
    def source(self) -> Source:
        """It as a source."""
        return Source(self.agent_state, self.observe, self.refusals, "0.26.0")

    def observe(self) -> Sequence[Observation]:
        """Return what it was made with."""
        gils = [Observation(gil=seen) for seen in self.observations]
        live = [Observation(transactions=seen) for seen in self.transactions]
        return [*gils, *live, *(Observation(locks=seen) for seen in self.locks)]

    def refusals(self) -> Sequence[Refusal]:
        """Return one Python that cannot be traced."""
        return [Refusal(7, "old.py", "too old", "")]

    def agent_state(self) -> AgentState:
        """Return what it was made with."""
        return self.agent


@dataclass
class Scrape:
    """What came out."""

    families: Sequence[Metric]

    def value(self, name: str, **labels: str) -> float | None:
        """Return the sample with exactly these labels, or None; an empty one is none."""
        found = [
            sample.value
            for family in self.families
            for sample in family.samples
            if sample.name == name and _present(sample.labels) == _present(labels)
        ]
        assert len(found) <= 1
        return found[0] if found else None

    def of_process(self, name: str, **labels: str) -> float | None:
        """Return the same for the process of `recordings`."""
        return self.value(name, **_OF_PROCESS, **labels)

    def samples(self, name: str) -> list[Sample]:
        """Return all samples of that name."""
        return [
            sample for family in self.families for sample in family.samples if sample.name == name
        ]

    def total(self, name: str) -> float:
        """Return the sum of these samples."""
        return sum(sample.value for sample in self.samples(name))

    def names(self) -> set[str]:
        """Return the names of all samples."""
        return {sample.name for family in self.families for sample in family.samples}


def _present(labels: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in labels.items() if value}


def scrape(
    *observations: GilObservation, agent: AgentState = AGENT, content_type: str = PLAIN
) -> Scrape:
    """Return what a scrape of *observations* says."""
    return read(AgentCollector(Fixed(observations, agent).source), content_type)


def read(collector: AgentCollector, content_type: str = PLAIN) -> Scrape:
    """Return what *collector* exports, by the library's own parser."""
    return parse(encode(collector.collect(), content_type).decode(), content_type)


def parse(text: str, content_type: str = PLAIN) -> Scrape:
    """Return what *text* says, by the library's own parser."""
    if content_type == OPEN_METRICS:
        families = openmetrics.text_string_to_metric_families(text)  # type: ignore[no-untyped-call]
        return Scrape(tuple(families))
    return Scrape(tuple(text_string_to_metric_families(text)))
