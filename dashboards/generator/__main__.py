"""Writes the dashboards anew: ``python -m dashboards.generator``, from the top of the checkout."""

from pathlib import Path

from dashboards.generator.pages import render

_FOLDER = Path(__file__).resolve().parents[1] / "grafana"

for name, text in render().items():
    (_FOLDER / name).write_text(text)
