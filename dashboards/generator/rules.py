"""The rules as objects for the Prometheus operator."""

from collections.abc import Mapping
from pathlib import Path
from textwrap import indent

__all__ = ["render"]

_HEAD = """\
# Made from dashboards/rules/{file} by `make docs`.
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: gilscope-{name}
  labels:
    app.kubernetes.io/name: gilscope
spec:
"""


def render(rules: Path) -> Mapping[str, str]:
    """Return the text of each object by the name of its file, one for each file in *rules*."""
    return {f"rules-{path.stem}.yaml": _object(path) for path in sorted(rules.glob("*.yml"))}


def _object(path: Path) -> str:
    # Its text and not its content: the reasons of thresholds are in comments.
    return _HEAD.format(file=path.name, name=path.stem) + indent(path.read_text(), "  ")
