"""Kubernetes objects as tests see them, and what is wrong with them by the published schemas."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import jsonschema
import kubernetes_validate
import yaml

from support.paths import ROOT, TESTS

__all__ = ["DEPLOY", "VERSION", "Object", "faults", "objects"]

DEPLOY = ROOT / "deploy"
VERSION = "1.36"
"""Of Kubernetes."""

_SCHEMAS = TESTS / "deploy" / "schemas"

Object = Mapping[str, Any]


def objects(text: str) -> list[Object]:
    """Return the objects in a text of YAML."""
    return [each for each in yaml.safe_load_all(text) if each]


def faults(thing: Object) -> Iterator[str]:
    """Yield what is wrong with *thing*; a kind of which no schema is known is wrong too."""
    try:
        kubernetes_validate.validate(dict(thing), VERSION, strict=True)
    except kubernetes_validate.ValidationError as error:
        yield _said(error)
    except kubernetes_validate.SchemaNotFoundError:
        group, _, version = str(thing["apiVersion"]).partition("/")
        schema = _SCHEMAS / f"{str(thing['kind']).lower()}-{group}-{version}.json"
        if not schema.exists():
            yield f"there is no schema of {thing['kind']}"
            return
        validator = jsonschema.Draft202012Validator(json.loads(schema.read_text()))
        yield from map(_said, validator.iter_errors(thing))


def _said(error: jsonschema.ValidationError) -> str:
    return f"{'.'.join(map(str, error.path))}: {error.message}"
