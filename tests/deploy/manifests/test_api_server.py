"""All manifests as a real kube-apiserver takes them, in a dry run: nothing is scheduled or run."""

import json
import ssl
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from support.commands.gilscope import eventually
from support.deploy.manifest_tools import CRDS, manifests, run, tool
from support.deploy.manifests import DEPLOY, objects
from support.ports import free_port

_TOKEN = "anybody"  # noqa: S105 - of a server that lives for seconds, on the loopback
_NAMESPACES = {"gilscope": "privileged", "careful": "baseline", "strict": "restricted"}
_PATIENCE_S = 90.0


@dataclass(frozen=True, slots=True)
class _Cluster:
    """An API server without nodes."""

    url: str

    def kubectl(self, *words: str, given: str) -> tuple[int, str]:
        """Return the exit code of kubectl, and what it says of the objects in *given*."""
        server = ("--server", self.url, "--insecure-skip-tls-verify", "--token", _TOKEN)
        return run("kubectl", *server, *words, "-f", "-", given=given)

    def apply(self, text: str, *words: str) -> tuple[int, str]:
        """Have it say what it would do with the objects in *text*."""
        return self.kubectl("apply", "--dry-run=server", "--validate=strict", *words, given=text)

    def is_ready(self) -> bool:
        """Whether it answers."""
        trusting = ssl._create_unverified_context()  # noqa: SLF001, S323 - it made its key itself
        try:
            with urllib.request.urlopen(f"{self.url}/readyz", context=trusting):  # noqa: S310
                return True
        except (urllib.error.URLError, ConnectionError):
            return False


@contextmanager
def _running(log: Path, *command: str) -> Iterator["subprocess.Popen[bytes]"]:
    with log.open("wb") as said, subprocess.Popen(command, stdout=said, stderr=said) as process:
        try:
            yield process
        finally:
            process.kill()


@contextmanager
def _etcd(folder: Path) -> Iterator[str]:
    client, peer = (f"http://127.0.0.1:{free_port()}" for _ in range(2))
    command = (
        *(tool("etcd"), "--name", "t", "--data-dir", str(folder / "etcd")),
        *("--listen-client-urls", client, "--advertise-client-urls", client),
        *("--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer),
        *("--initial-cluster", f"t={peer}", "--unsafe-no-fsync"),
    )
    with _running(folder / "etcd.log", *command):
        yield client


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[_Cluster]:
    """A server that knows the operator's kinds, with namespaces of each level of Pod Security."""
    folder = tmp_path_factory.mktemp("cluster")
    key = folder / "sa.key"
    subprocess.run(["openssl", "genrsa", "-out", key, "2048"], check=True, capture_output=True)
    (folder / "tokens.csv").write_text(f"{_TOKEN},admin,admin,system:masters\n")
    port = free_port()
    with _etcd(folder) as storage:
        command = (
            *(tool("kube-apiserver"), "--etcd-servers", storage),
            *("--cert-dir", str(folder / "certificates"), "--token-auth-file"),
            *(str(folder / "tokens.csv"), "--authorization-mode=RBAC"),
            *(f"--service-account-issuer=https://127.0.0.1:{port}",),
            *("--service-account-key-file", str(key)),
            *("--service-account-signing-key-file", str(key)),
            *("--service-cluster-ip-range=10.0.0.0/24", "--bind-address=127.0.0.1"),
            *(f"--secure-port={port}", "--disable-admission-plugins=ServiceAccount"),
        )
        log = folder / "apiserver.log"
        with _running(log, *command) as process:
            made = _Cluster(f"https://127.0.0.1:{port}")

            def is_ready() -> bool:
                assert process.poll() is None, log.read_text()
                return made.is_ready()

            eventually(is_ready, within_s=_PATIENCE_S)
            _furnish(made)
            yield made


def _furnish(cluster: _Cluster) -> None:
    spaces = "---\n".join(
        yaml.safe_dump(
            {
                "apiVersion": "v1",
                "kind": "Namespace",
                "metadata": {
                    "name": name,
                    "labels": {"pod-security.kubernetes.io/enforce": level},
                },
            }
        )
        for name, level in _NAMESPACES.items()
    )
    for text in (*(path.read_text() for path in CRDS), spaces):
        code, said = cluster.kubectl("apply", "--server-side", given=text)
        assert 0 == code, said
    # A definition is accepted before its kind is served.
    rules = manifests()["rules-gil.yaml"]
    eventually(lambda: 0 == cluster.apply(rules)[0], within_s=_PATIENCE_S)


def test_server_accepts_all_objects(cluster: _Cluster) -> None:
    """
    All files, what is exported, and what the chart makes; and each object is in the answer.
    """
    said = {name: cluster.apply(text) for name, text in manifests().items()}

    assert {} == {name: words for name, (code, words) in said.items() if code}
    for name, text in manifests().items():
        assert len(objects(text)) == said[name][1].count("(server dry run)")


@pytest.mark.parametrize(
    ("name", "old", "new", "words"),
    [
        (
            "daemonset.yaml",
            "hostPID: true",
            "hostpid: true",
            'unknown field "spec.template.spec.hos',
        ),
        ("daemonset.yaml", "clusterIP: None", "clusterIP: nowhere", "clusterIPs[0]"),
        ("sidecar.yaml", "containerPort: 9845", "containerPort: 98450", "between 1 and 65535"),
        ("podmonitor.yaml", "- port: gilscope", "- prot: gilscope", "podMetricsEndpoints[0].prot"),
        ("rules-gil.yaml", "for: 10m", "for: ten minutes", "rules"),
    ],
)
def test_faults_are_found(cluster: _Cluster, name: str, old: str, new: str, words: str) -> None:
    """
    Also those that no schema knows, such as an address that is none.
    """
    text = manifests()[name]
    assert old in text

    code, said = cluster.apply(text.replace(old, new, 1))

    assert 1 == code
    assert words in said


@pytest.mark.parametrize("file", ["daemonset.yaml", "sidecar.yaml"])
@pytest.mark.parametrize("namespace", _NAMESPACES)
def test_namespace_has_to_be_privileged(cluster: _Cluster, file: str, namespace: str) -> None:
    """
    Pod Security refuses the pods at both other levels, and names the capabilities.
    """
    (template,) = [
        each["spec"]["template"]
        for each in objects((DEPLOY / "kubernetes" / file).read_text())
        if "template" in each.get("spec", {})
    ]
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "some", "namespace": namespace},
        "spec": {**template["spec"], "serviceAccountName": "default"},
    }

    code, said = cluster.apply(json.dumps(pod))

    assert (namespace != "gilscope") == bool(code), said
    assert not code or '"BPF", "' in said
