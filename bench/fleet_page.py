"""Writes docs/fleet.md: what was measured of a fleet, put into bench/fleet.md."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.fleet_families import Series, drop_rules, family_table, loss_table
from bench.fleet_prometheus import Asked, Question
from bench.markdown import key_table, table

__all__ = ["Fleet", "Measured", "Mode", "page"]

_TEXT = Path(__file__).with_name("fleet.md")
_DEFAULT = "auto"
_HOSTS, _SERVICES = 10_000, 3
_SIZES = ((100, 3), (1000, 3), (1000, 20), (10_000, 3), (10_000, 20))


@dataclass(frozen=True, slots=True)
class Mode:
    """What one agent exported in a mode."""

    mode: str
    series: tuple[Series, ...]
    page_bytes: int
    compressed_bytes: int
    """As Prometheus gets it, by gzip."""
    services: tuple[str, ...]
    """Each kind of process that was traced, as it is called."""

    def of(self, service: str | None) -> int:
        """Return the number of series of a service; of None: those of none."""
        return sum(labels.get("process") == service for _, labels in self.series)


@dataclass(frozen=True, slots=True)
class Measured:
    """What a fleet was to Prometheus."""

    agents: int
    version: str
    up: int
    """Agents whose last scrape succeeded."""
    head_series: int
    recorded_series: int
    """What all recording rules have made."""
    service_series: int
    """What those for fleets have made."""
    samples_per_s: float
    resident_bytes: int
    """Of Prometheus, before it was asked for dashboards."""
    resident_after_bytes: int
    cpu_share: float
    """Cores that Prometheus took while it scraped and evaluated."""
    wal_bytes: int
    samples: int
    """All that were appended."""
    groups: tuple[tuple[str, float, float], ...]
    """Each rule group with the seconds of its last evaluation, before Prometheus was asked for
    dashboards and right after."""
    asked: tuple[Asked, ...]


@dataclass(frozen=True, slots=True)
class Fleet:
    """All that is on the page."""

    rows: tuple[tuple[str, str], ...]
    """About the machine and the run."""
    interval_s: int
    modes: tuple[Mode, ...]
    measured: tuple[Measured, ...]

    @classmethod
    def read(cls, raw: Mapping[str, Any]) -> "Fleet":
        """Return what was kept as JSON; raises ValueError where that has another form."""
        try:
            return cls(
                _pairs(raw["rows"]),
                raw["interval_s"],
                tuple(
                    Mode(
                        each["mode"],
                        _pairs(each["series"]),
                        each["page_bytes"],
                        each["compressed_bytes"],
                        tuple(each["services"]),
                    )
                    for each in raw["modes"]
                ),
                tuple(
                    Measured(
                        **{
                            **each,
                            "groups": _pairs(each["groups"]),
                            "asked": tuple(
                                Asked(**{**one, "question": Question(**one["question"])})
                                for one in each["asked"]
                            ),
                        }
                    )
                    for each in raw["measured"]
                ),
            )
        except (KeyError, TypeError) as error:
            raise ValueError(
                f"the raw figures have another form: {error}; measure again"
            ) from error


def _pairs(pairs: Sequence[Sequence[Any]]) -> tuple[Any, ...]:
    return tuple(map(tuple, pairs))


def page(fleet: Fleet) -> str:
    """Return the page."""
    text = _TEXT.read_text()
    for name, value in _parts(fleet).items():
        text = text.replace(f"{{{name}}}", value)
    return text


def _parts(fleet: Fleet) -> dict[str, str]:
    most = max(fleet.measured, key=lambda each: each.agents)
    (usual,) = [each for each in fleet.modes if each.mode == _DEFAULT]
    of_agent = usual.of(None)
    of_service = (len(usual.series) - of_agent) / len(usual.services)
    series = _HOSTS * (of_agent + _SERVICES * of_service)
    each_bytes = most.resident_after_bytes / most.head_series
    return {
        "machine": key_table(fleet.rows),
        "modes": _mode_table(fleet.modes),
        "fleets": _fleet_table(fleet.measured),
        "groups": _group_table(most),
        "queries": _query_table(most),
        "families": family_table(usual.series, len(usual.services)),
        "losses": loss_table(usual.series),
        "drops": drop_rules(),
        "sizes": "".join(_size(each, of_agent, of_service, each_bytes) for each in _SIZES),
        "agents": f"{most.agents:,}",
        "interval": str(fleet.interval_s),
        "of_agent": str(of_agent),
        "of_service": f"{of_service:.0f}",
        "hosts": f"{_HOSTS:,}",
        "services": str(_SERVICES),
        "fleet_series": f"{series / 1e6:.1f} million",
        "fleet_samples": f"{series / fleet.interval_s:,.0f}",
        "fleet_samples_minute": f"{series / 60:,.0f}",
        "series_bytes": f"{each_bytes:,.0f}",
        "fleet_memory": f"{series * each_bytes / 1e9:.0f} GB",
        "sample_bytes": f"{most.wal_bytes / most.samples:.1f}",
        "service_series": str(most.service_series),
        "recorded_share": f"{most.recorded_series / most.head_series:.1%}",
    }


def _mode_table(modes: Sequence[Mode]) -> str:
    return table(
        [
            "mode",
            *(f"series of `{name}`" for name in modes[0].services),
            "of the agent itself",
            "all",
            "bytes",
            "compressed",
        ],
        [
            [
                each.mode,
                *(str(each.of(name)) for name in each.services),
                str(each.of(None)),
                str(len(each.series)),
                f"{each.page_bytes:,}",
                f"{each.compressed_bytes:,}",
            ]
            for each in modes
        ],
    )


def _fleet_table(measured: Sequence[Measured]) -> str:
    rows = {
        "agents that answered": lambda m: f"{m.up:,} of {m.agents:,}",
        "head series": lambda m: f"{m.head_series:,}",
        "of these recorded by rules": lambda m: f"{m.recorded_series:,}",
        "of these by the rules for fleets": lambda m: f"{m.service_series:,}",
        "samples a second": lambda m: f"{m.samples_per_s:,.0f}",
        "resident memory": lambda m: f"{m.resident_bytes / 1e9:.2f} GB",
        "after all dashboards were asked": lambda m: f"{m.resident_after_bytes / 1e9:.2f} GB",
        "bytes of memory a head series": lambda m: f"{m.resident_bytes / m.head_series:,.0f}",
        "bytes of the WAL a sample": lambda m: f"{m.wal_bytes / m.samples:.1f}",
        "cores": lambda m: f"{m.cpu_share:.2f}",
        "all rules": lambda m: f"{sum(took for _, took, _ in m.groups):.2f} s",
    }
    return table(
        ["", *(f"{each.agents:,} agents" for each in measured)],
        [[name, *map(shown, measured)] for name, shown in rows.items()],
    )


def _group_table(measured: Measured) -> str:
    return table(
        ["rule group", "seconds", "beside the dashboards' queries"],
        [[f"`{name}`", f"{alone:.2f}", f"{beside:.2f}"] for name, alone, beside in measured.groups],
    )


def _query_table(measured: Measured) -> str:
    by_dashboard: defaultdict[str, list[Asked]] = defaultdict(list)
    for each in measured.asked:
        by_dashboard[each.question.dashboard].append(each)
    return table(
        ["dashboard", "queries", "all, s", "slowest, s", "which", "its series", "failed"],
        [_query_row(name, each) for name, each in by_dashboard.items()],
    )


def _query_row(name: str, all_asked: Sequence[Asked]) -> list[str]:
    slowest = max(all_asked, key=lambda each: each.took_s)
    return [
        name,
        str(len(all_asked)),
        f"{sum(each.took_s for each in all_asked):.1f}",
        f"{slowest.took_s:.1f}",
        slowest.question.panel,
        str(slowest.series),
        str(sum(bool(each.error) for each in all_asked)),
    ]


def _size(size: tuple[int, int], of_agent: int, of_service: float, series_bytes: float) -> str:
    hosts, services = size
    series = hosts * (of_agent + services * of_service)
    cells = (
        f"{hosts:,}",
        str(services),
        f"{series / 1e6:.2f} million",
        f"{series / 15:,.0f}",
        f"{series / 60:,.0f}",
        f"{series * series_bytes / 1e9:.1f} GB",
    )
    return f"| {' | '.join(cells)} |\n"
