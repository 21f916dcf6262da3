"""Writes dashboards and objects anew: ``python -m dashboards.generator``, from the top."""

from pathlib import Path

from dashboards.generator import pages, rules

_DASHBOARDS = Path(__file__).resolve().parents[1]
_OBJECTS = _DASHBOARDS.parent / "deploy" / "prometheus-operator"

for name, text in pages.render().items():
    (_DASHBOARDS / "grafana" / name).write_text(text)
for name, text in rules.render(_DASHBOARDS / "rules").items():
    (_OBJECTS / name).write_text(text)
