"""Keeps results as JSON, cell by cell, so that a run can be stopped and continued."""

import dataclasses
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.experiments.cells import Outcome, Results

__all__ = ["read", "write"]


def read(name: str, folder: Path) -> Results:
    """Return what is known of an experiment; nothing where it was never run.

    Raises OSError, and ValueError if the file is of another form.
    """
    path = folder / f"{name}.json"
    if not path.exists():
        return Results(name, {})
    value = json.loads(path.read_text())
    try:
        outcomes = tuple(Outcome(**each) for each in value["outcomes"])
        return Results(name, value["about"], outcomes)
    except (KeyError, TypeError) as error:
        raise ValueError(f"{path} was written by another version: run it with AFRESH=1") from error


def write(results: Results, source: Mapping[str, Any], folder: Path) -> None:
    """Keep *results*, with the source's figures beside them; whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{results.name}.json"
    value = {
        "experiment": results.name,
        "about": results.about,
        "source": source,
        "outcomes": [dataclasses.asdict(each) for each in results.outcomes],
    }
    new = path.with_suffix(".new")
    new.write_text(json.dumps(value, indent=1) + "\n")
    os.replace(new, path)  # noqa: PTH105 - the same, and says that it replaces
