"""Makes the schemas in this folder again, from the Prometheus operator's resource definitions.

Needs what `make check-manifests` fetches. Properties that a definition does not name are errors
here, as they are to a kube-apiserver that is asked to be strict. Texts are left out.
"""

import json
from pathlib import Path
from typing import Any

import yaml

_HERE = Path(__file__).resolve().parent
_DEFINITIONS = _HERE.parents[2] / ".cache" / "manifests" / "crds"


def _closed(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_closed(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    texts = {"description"} if isinstance(schema.get("description"), str) else set()
    made = {key: _closed(value) for key, value in schema.items() if key not in texts}
    is_open = "x-kubernetes-preserve-unknown-fields" in made
    if isinstance(made.get("properties"), dict) and not is_open:
        made.setdefault("additionalProperties", False)
    return made


for path in sorted(_DEFINITIONS.glob("*.yaml")):
    definition = yaml.safe_load(path.read_text())["spec"]
    (version,) = [each for each in definition["versions"] if each["storage"]]
    made = _closed(version["schema"]["openAPIV3Schema"])
    name = f"{definition['names']['kind'].lower()}-{definition['group']}-{version['name']}.json"
    (_HERE / name).write_text(json.dumps(made, sort_keys=True) + "\n")
