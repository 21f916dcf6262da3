"""All manifests as kubeconform sees them, which reads schemas in its own way."""

import json
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest

from support.deploy.manifest_tools import VERSION, manifests, run
from support.deploy.manifests import objects
from support.paths import TESTS

_WITHOUT_NETWORK = (
    Path(kubernetes_validate.__file__).parent
    / "kubernetes-json-schema"
    / f"v{VERSION}-local-strict"
)
_OF_THE_OPERATOR = TESTS / "deploy" / "schemas"


def _local(schema: Any) -> Any:
    """Return *schema* with references to files beside it, and without an address of its own."""
    if isinstance(schema, list):
        return [_local(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: value.replace("/api/_definitions.json", "_definitions.json")
        if key == "$ref" and isinstance(value, str)
        else _local(value)
        for key, value in schema.items()
        if not (key == "$id" and isinstance(value, str))
    }


@pytest.fixture(scope="module")
def schemas(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Kubernetes' schemas in the form that kubeconform can read."""
    folder = tmp_path_factory.mktemp("schemas")
    kinds = {str(each["kind"]).lower() for text in manifests().values() for each in objects(text)}
    for path in _WITHOUT_NETWORK.glob("*.json"):
        if path.name == "_definitions.json" or path.name.partition("-")[0] in kinds:
            (folder / path.name).write_text(json.dumps(_local(json.loads(path.read_text()))))
    return folder


def _check(schemas: Path, text: str) -> tuple[int, str]:
    return run(
        "kubeconform",
        *("-strict", "-summary", "-kubernetes-version", VERSION),
        *("-schema-location", f"{schemas}/{{{{.ResourceKind}}}}{{{{.KindSuffix}}}}.json"),
        "-schema-location",
        f"{_OF_THE_OPERATOR}/{{{{.ResourceKind}}}}-{{{{.Group}}}}-{{{{.ResourceAPIVersion}}}}.json",
        "-",
        given=text,
    )


def test_objects_have_the_published_form(schemas: Path) -> None:
    """
    All files, what is exported, and what the chart makes.
    """
    said = {name: _check(schemas, text) for name, text in manifests().items()}

    assert {} == {name: words for name, (code, words) in said.items() if code}
    assert {} == {name: words for name, (_, words) in said.items() if "Skipped: 0" not in words}


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("daemonset.yaml", "hostPID: true", "hostpid: true"),
        ("sidecar.yaml", "containerPort: 9845", "containerPort: all"),
        ("podmonitor.yaml", "- port: gilscope", "- prot: gilscope"),
        ("rules-gil.yaml", "alert: GilscopeGilHog", "alarm: GilscopeGilHog"),
    ],
)
def test_faults_are_found(schemas: Path, name: str, old: str, new: str) -> None:
    """
    Fields that do not exist, and values of other types.
    """
    text = manifests()[name]
    assert old in text

    code, said = _check(schemas, text.replace(old, new, 1))

    assert 1 == code
    assert "is invalid: problem validating schema" in said
