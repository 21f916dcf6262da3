"""Makes the schemas in this folder again: of the Prometheus operator's kinds, and of compose files.

Needs what `make check-manifests` fetches. Properties that a definition of a kind does not name are
errors here, as they are to a kube-apiserver that is asked to be strict. Texts are left out.
"""

import json
from pathlib import Path
from typing import Any

import yaml

_HERE = Path(__file__).resolve().parent
_FETCHED = _HERE.parents[2] / ".cache" / "manifests"


def _bare(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_bare(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    texts = {"description"} if isinstance(schema.get("description"), str) else set()
    return {key: _bare(value) for key, value in schema.items() if key not in texts}


def _closed(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_closed(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: _closed(value) for key, value in schema.items()}
    is_open = "x-kubernetes-preserve-unknown-fields" in made
    if isinstance(made.get("properties"), dict) and not is_open:
        made.setdefault("additionalProperties", False)
    return made


def _write(name: str, schema: Any) -> None:
    (_HERE / f"{name}.json").write_text(json.dumps(schema, sort_keys=True) + "\n")


_write("compose-spec", _bare(json.loads((_FETCHED / "compose-spec.json").read_text())))
for path in sorted((_FETCHED / "crds").glob("*.yaml")):
    definition = yaml.safe_load(path.read_text())["spec"]
    (version,) = [each for each in definition["versions"] if each["storage"]]
    kind = definition["names"]["kind"].lower()
    made = _closed(_bare(version["schema"]["openAPIV3Schema"]))
    _write(f"{kind}-{definition['group']}-{version['name']}", made)
