"""The programs that `make check-receivers` builds, each with a configuration of its own."""

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.commands.http_server import free_address, ready_server
from support.paths import TESTS
from support.ports import free_port

__all__ = ["Collector", "collecting", "storing_profiles"]

_IN_RINGS = (
    *("compactor.ring", "distributor.ring", "overrides-exporter.ring", "query-frontend"),
    *("query-scheduler.ring", "store-gateway.sharding-ring"),
)
_BIN = TESTS.parent / ".cache" / "receivers" / "bin"
_NO_QUEUE = {"sending_queue": {"enabled": False}, "retry_on_failure": {"enabled": False}}
_QUIET = {"metrics": {"level": "none"}, "logs": {"encoding": "console"}}


@dataclass(frozen=True)
class Collector:
    """A running Collector."""

    receiver: str
    """The address at which it takes OTLP over HTTP."""
    exporter: str
    """The address at which Prometheus would scrape what it has got."""


@contextmanager
def collecting(profiles_to: str) -> Iterator[Collector]:
    """Run a Collector that shows its metrics, and passes profiles on to the URL *profiles_to*."""
    receiver, exporter = free_address(), free_address()
    configuration = {
        "receivers": {"otlp": {"protocols": {"http": {"endpoint": receiver}}}},
        "exporters": {
            "prometheus": {"endpoint": exporter},
            "otlp_http": {"endpoint": profiles_to, **_NO_QUEUE},
        },
        "service": {
            "telemetry": _QUIET,
            "pipelines": {
                "metrics": {"receivers": ["otlp"], "exporters": ["prometheus"]},
                "profiles": {"receivers": ["otlp"], "exporters": ["otlp_http"]},
            },
        },
    }
    gate = "--feature-gates=service.profilesSupport"
    with _configured(configuration) as file:
        command = [_program("collector"), f"--config={file}", gate]
        with ready_server(command, exporter, file.with_name("log"), "/metrics"):
            yield Collector(receiver, exporter)


@contextmanager
def storing_profiles() -> Iterator[str]:
    """Run a Pyroscope that keeps all to itself, and return its address."""
    address = free_address()
    with tempfile.TemporaryDirectory() as folder:
        command = (
            # Its paths for Go's profiler are two that Go does not take together since 1.22.
            *("env", "GODEBUG=httpmuxgo121=1", _program("pyroscope")),
            *("-self-profiling.disable-push", "-usage-stats.enabled=false"),
            *(
                "-server.http-listen-address=127.0.0.1",
                f"-server.http-listen-port={address.rpartition(':')[2]}",
            ),
            *("-server.grpc-listen-address=127.0.0.1", f"-server.grpc-listen-port={free_port()}"),
            *("-memberlist.bind-addr=127.0.0.1", f"-memberlist.bind-port={free_port()}"),
            *(f"-{part}.instance-addr=127.0.0.1" for part in _IN_RINGS),
            *("-storage.backend=filesystem", f"-storage.filesystem.dir={folder}/shared"),
            *(f"-pyroscopedb.data-path={folder}/data", f"-compactor.data-dir={folder}/compactor"),
            *("-ingester.min-ready-duration=0s", "-ingester.lifecycler.addr=127.0.0.1"),
        )
        with ready_server(command, address, Path(folder, "log"), "/ready"):
            yield address


@contextmanager
def _configured(configuration: Mapping[str, Any]) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "configuration.yaml")
        file.write_text(yaml.safe_dump(configuration))
        yield file


def _program(name: str) -> str:
    path = _BIN / name
    if not path.exists():
        pytest.fail(f"{name} was not built: run `make check-receivers`", pytrace=False)
    return str(path)
