"""The programs that `make check-manifests` builds, and the manifests that they are shown."""

import subprocess
from functools import cache
from pathlib import Path

import pytest

from gilscope.assets.bundles import kubernetes
from support.deploy.manifests import DEPLOY

__all__ = ["CHART", "CRDS", "ROOT", "VERSION", "manifests", "rendered", "run", "tool"]

ROOT = DEPLOY.parent
CHART = DEPLOY / "helm" / "gilscope"
VERSION = "1.36.0"
"""Of Kubernetes."""

_CACHE = ROOT / ".cache" / "manifests"
CRDS = sorted((_CACHE / "crds").glob("*.yaml"))
_EVERYTHING = ("monitor.enabled=true", "rules.enabled=true", "dashboards.enabled=true")


def tool(name: str) -> str:
    """Return the path of the program *name*; fails where it was not built."""
    path = _CACHE / "bin" / name
    if not path.exists():
        pytest.fail(f"{name} was not built: run `make check-manifests`", pytrace=False)
    return str(path)


def run(name: str, *arguments: str, given: str | None = None) -> tuple[int, str]:
    """Return the exit code of a program, and what it says."""
    command = [tool(name), *arguments]
    done = subprocess.run(
        command, input=given, capture_output=True, text=True, timeout=120, check=False
    )
    return done.returncode, done.stdout + done.stderr


def rendered(*values: str, chart: Path = CHART) -> str:
    """Return what the chart makes of *values*; fails where it makes nothing."""
    arguments = [word for value in values for word in ("--set", value)]
    command = [tool("helm"), "template", "some", str(chart), "--kube-version", VERSION, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert 0 == done.returncode, done.stderr
    return done.stdout


@cache
def manifests() -> dict[str, str]:
    """Return the text of every file with objects, and of what the chart makes, by a name."""
    files = {path.name: path.read_text() for path in (DEPLOY / "kubernetes").glob("*.yaml")}
    charts = {
        f"chart, {mode}": rendered(f"mode={mode}", *_EVERYTHING)
        for mode in ("daemonset", "sidecar")
    }
    return {**files, **kubernetes(), **charts}
