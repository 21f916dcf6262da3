"""Starts ``gilscope serve`` and scrapes it."""

import http.client
import signal
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from email.message import Message

from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from support.commands.gilscope import Gilscope, Outcome, gilscope_started

__all__ = ["Page", "Scrape", "Service", "service_of", "serving"]

_PATIENCE_S = 30.0


@dataclass(frozen=True, slots=True)
class Page:
    """An answer over HTTP."""

    status: int
    headers: Message
    text: str


@dataclass(frozen=True, slots=True)
class Scrape:
    """All samples of one moment, which lies between *before_s* and *after_s* (monotonic)."""

    before_s: float
    after_s: float
    families: tuple[Metric, ...]

    def samples(self, name: str, **labels: str) -> list[Sample]:
        """Return the samples of that name that bear *labels*."""
        return [
            sample
            for family in self.families
            for sample in family.samples
            if sample.name == name and labels.items() <= sample.labels.items()
        ]

    def total(self, name: str, **labels: str) -> float:
        """Return the sum of these samples, 0 where there are none."""
        return sum(sample.value for sample in self.samples(name, **labels))

    def pids(self) -> set[int]:
        """Return the processes that are spoken of."""
        return {int(sample.labels["pid"]) for sample in self.samples("gilscope_probe_valid")}

    def counters(self) -> dict[str, float]:
        """Return everything that must never fall, by name and labels."""
        return dict(_counters(self.families))


def _counters(families: Iterable[Metric]) -> Iterator[tuple[str, float]]:
    for family in families:
        if family.type in ("counter", "histogram"):
            for sample in family.samples:
                yield f"{sample.name}{sorted(sample.labels.items())}", sample.value


@dataclass(frozen=True, slots=True)
class Service:
    """A serving agent."""

    command: Gilscope
    host: str
    port: int
    url: str

    def get(self, path: str, *, method: str = "GET", **headers: str) -> Page:
        """Return the page at *path*."""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=_PATIENCE_S)
        try:
            connection.request(method, path, headers=headers)
            answer = connection.getresponse()
            return Page(answer.status, answer.headers, answer.read().decode())
        finally:
            connection.close()

    def scrape(self) -> Scrape:
        """Return what Prometheus would get now."""
        before_s = time.monotonic()
        text = self.get("/metrics").text
        after_s = time.monotonic()
        return Scrape(before_s, after_s, tuple(text_string_to_metric_families(text)))

    def end(self, number: signal.Signals = signal.SIGTERM) -> Outcome:
        """End it by a signal, and return what it leaves behind."""
        self.command.send(number)
        return self.command.outcome()


@contextmanager
def serving(
    *arguments: str, wrapper: Sequence[str] = (), by_service: bool = False
) -> Iterator[Service]:
    """Serve on a free port of the loopback until the block has ended.

    Series are those of processes, whose figures are known, unless they are to be *by_service*.
    """
    owners = () if by_service else ("--per-process",)
    line = ("serve", "--listen", "127.0.0.1:0", *owners, *arguments)
    with gilscope_started(*line, wrapper=wrapper) as command:
        yield service_of(command)


def service_of(command: Gilscope) -> Service:
    """Return what *command* serves on an IPv4 address, as soon as it does."""
    url = command.says("Serving ").split()[1].removesuffix("metrics.")
    host, _, port = url.partition("://")[2].rstrip("/").partition(":")
    return Service(command, host, int(port), url)
