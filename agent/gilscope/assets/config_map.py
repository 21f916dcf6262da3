"""Writes Kubernetes' ConfigMaps as YAML."""

from collections.abc import Mapping
from textwrap import indent

__all__ = ["config_map"]

_HEAD = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: {name}
  labels:
    app.kubernetes.io/name: gilscope
"""


def config_map(name: str, labels: Mapping[str, str], files: Mapping[str, str]) -> str:
    """Return a ConfigMap that holds *files*, whose names have no blanks, with *labels*.

    Each text must end with one line feed and begin with no blank, which is where YAML would read
    something else.
    """
    lines = [_HEAD.format(name=name)]
    lines += [f'    {label}: "{value}"\n' for label, value in labels.items()]
    lines.append("data:\n")
    for file, text in files.items():
        lines.append(f"  {file}: |\n")
        lines.append(indent(text, "    "))
    return "".join(lines)
