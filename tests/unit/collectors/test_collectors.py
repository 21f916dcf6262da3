"""From observations to Prometheus."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric

from gilscope import metrics
from gilscope.collectors.agent import AgentCollector
from gilscope.histogram import EMPTY
from gilscope.model import Kind, Observation, Refusal, Tally
from recordings import MS, PROCESS, convoy, gil, histogram, observation, thread

_LABELS = {"process": "app.py", "pid": "4711", "container_id": "", "pod_uid": ""}


@dataclass
class _Fixed:
    """Always sees the same."""

    observations: Sequence[Observation]
    bcc_version: str = "0.26.0"

    def observe(self) -> Sequence[Observation]:
        """Return what it was made with."""
        return self.observations

    def refusals(self) -> Sequence[Refusal]:
        """Return one Python that cannot be traced."""
        return [Refusal(7, "old.py", "too old", "")]


class _Broken(_Fixed):
    """Cannot read its maps."""

    def observe(self) -> Sequence[Observation]:
        """Fail as a map does that is gone."""
        raise OSError(9, "Bad file descriptor")


def _registry(*observations: Observation) -> CollectorRegistry:
    registry = CollectorRegistry()
    registry.register(AgentCollector(_Fixed(observations)))
    return registry


def _value(registry: CollectorRegistry, name: str, **labels: str) -> float | None:
    return registry.get_sample_value(name, _LABELS | labels)


def test_waiting_time_is_summed_by_role() -> None:
    """
    Two threads of one role are one series, in seconds.
    """
    registry = _registry(convoy().observation)

    assert 0.41 == _value(
        registry, "gilscope_gil_thread_wait_seconds_total", role="crunch (app.py:2)"
    )
    assert 110 == _value(registry, "gilscope_gil_thread_waits_total", role="crunch (app.py:2)")
    assert 1 == _value(registry, "gilscope_gil_waiting_threads")
    assert 0.003 == _value(registry, "gilscope_gil_longest_wait_seconds")


def test_overflow_counts_only_under_inf() -> None:
    """
    A wait longer than the last bucket is counted under +Inf and nowhere else.
    """
    registry = _registry(observation(gils=(gil(preemption=histogram(1 << 40)),)))

    def bucket(bound: str) -> float | None:
        return _value(
            registry,
            "gilscope_gil_wait_seconds_bucket",
            interpreter="0",
            after="preemption",
            le=bound,
        )

    assert 0 == bucket(repr((1 << 34) / 1e9))
    assert 1 == bucket("+Inf")


def test_thread_without_a_role_is_exported_when_it_has_one() -> None:
    """
    A counter never moves from one label to another.
    """
    young = thread(9, None, {Kind.CONVOY: Tally(5 * MS, 1)}, waiting_ns=MS)
    registry = _registry(observation((young,)))

    names = {
        sample.labels.get("role")
        for family in registry.collect()
        for sample in family.samples
        if family.name == "gilscope_gil_thread_wait_seconds"
    }
    assert set() == names
    assert 1 == _value(registry, "gilscope_gil_waiting_threads")


def test_interpreters_beyond_the_limit_share_a_label() -> None:
    """
    Thirty-two have their own series, whoever comes later is added to "other".
    """
    gils = tuple(replace(gil(number), drop_requests=1) for number in range(40))
    registry = _registry(observation(gils=gils))

    assert 1 == _value(registry, "gilscope_gil_drop_requests_total", interpreter="31")
    assert _value(registry, "gilscope_gil_drop_requests_total", interpreter="32") is None
    assert 8 == _value(registry, "gilscope_gil_drop_requests_total", interpreter="other")


def test_quiet_process_exports_zeros() -> None:
    """
    A rate can be taken before the first wait.
    """
    registry = _registry(observation(gils=(gil(),)))

    assert 0 == _value(
        registry, "gilscope_gil_wait_seconds_count", interpreter="0", after="blocking_call"
    )
    assert (
        _value(registry, "gilscope_gil_wait_seconds_count", interpreter="0", after="unknown")
        is None
    )


def test_what_is_not_known_is_not_exported() -> None:
    """
    Where causes are unknown there are no convoys and yields, rather than none.
    """
    blind = replace(PROCESS, method="libc", knows_causes=False)
    registry = _registry(replace(observation(gils=(gil(),)), process=blind))

    for name in ("gilscope_gil_convoy_waits_total", "gilscope_gil_forced_switches_total"):
        assert _value(registry, name, interpreter="0") is None
    assert [None, 0] == [
        _value(registry, "gilscope_gil_wait_seconds_count", interpreter="0", after=cause)
        for cause in ("blocking_call", "unknown")
    ]


def test_invalid_target_exports_its_invalidity_and_nothing_else() -> None:
    """
    No figure of a process whose probes cannot be trusted.
    """
    registry = _registry(replace(convoy().observation, invalid="why"))

    assert 0 == _value(registry, "gilscope_probe_valid", method="sites")
    assert _value(registry, "gilscope_gil_waiting_threads") is None
    assert 1 == registry.get_sample_value("gilscope_targets", {"state": "invalid"})
    assert 1 == registry.get_sample_value("gilscope_targets", {"state": "refused"})


def test_broken_source_does_not_break_the_scrape(caplog: pytest.LogCaptureFixture) -> None:
    """
    The agent's own figures are there, and say that the others are not.
    """
    registry = CollectorRegistry()
    registry.register(AgentCollector(_Broken(())))

    samples = {
        sample.name: sample.value for family in registry.collect() for sample in family.samples
    }

    assert 0 == samples["gilscope_scrape_success"]
    assert samples["gilscope_scrape_duration_seconds"] > 0
    assert ["this scrape could not read the probes"] == [
        record.getMessage() for record in caplog.records
    ]


def test_every_family_of_the_table_is_exported_with_its_labels() -> None:
    """
    Table and exporter agree: names, types, help texts and label names.
    """
    full = replace(
        convoy().observation,
        totals=replace(
            convoy().observation.totals,
            gils=(gil(blocking_call=histogram(MS), unknown=EMPTY),),
        ),
    )
    exported = {metric.name: metric for metric in _registry(full).collect()}

    expected = {_base_name(family): family for family in metrics.FAMILIES}
    assert set(expected) == set(exported)
    for name, family in expected.items():
        assert (family.type, family.help) == (exported[name].type, exported[name].documentation)
        assert set(family.labels) == _label_names(exported[name])


def _base_name(family: metrics.Family) -> str:
    return family.name.removesuffix("_total") if family.type == "counter" else family.name


def _label_names(metric: Metric) -> set[str]:
    return {name for sample in metric.samples for name in sample.labels} - {"le"}
