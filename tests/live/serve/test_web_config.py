"""``gilscope serve --web.config.file``: the command, and Prometheus as its client."""

from pathlib import Path
from typing import Any

import bcrypt
import pytest

from accuracy.truth import started
from support.certificates import Authority
from support.commands.gilscope import eventually, gilscope
from support.commands.serve import serving
from support.prometheus.server import prometheus, scraping

pytestmark = [pytest.mark.live, pytest.mark.beside_others]

_PYTHON = "/usr/bin/python3"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with certificates and a configuration that asks for everything."""
    folder = tmp_path_factory.mktemp("web")
    authority = Authority.made(folder)
    authority.pair("server", "IP:127.0.0.1")
    authority.pair("client", "DNS:prometheus")
    Authority.made(folder, "stranger").pair("client", "DNS:prometheus")
    (folder / "password").write_text("correct horse")
    hashed = bcrypt.hashpw(b"correct horse", bcrypt.gensalt(10)).decode()
    (folder / "web.yml").write_text(
        "tls_server_config:\n"
        "  cert_file: authority-server.crt\n"
        "  key_file: authority-server.key\n"
        "  client_auth_type: RequireAndVerifyClientCert\n"
        "  client_ca_file: authority.crt\n"
        f"basic_auth_users: {{prometheus: {hashed}}}\n"
    )
    return folder


def _safely(folder: Path, client: str, user: str) -> dict[str, Any]:
    tls = {
        "ca_file": f"{folder}/authority.crt",
        "cert_file": f"{folder}/{client}-client.crt",
        "key_file": f"{folder}/{client}-client.key",
    }
    password = {"username": user, "password_file": f"{folder}/password"}
    return {"scheme": "https", "tls_config": tls, "basic_auth": password}


def test_prometheus_scrapes_what_is_protected(folder: Path) -> None:
    """
    With the right certificate and password it gets figures; with one of them wrong, nothing.
    """
    options = {
        "right": _safely(folder, "authority", "prometheus"),
        "other_user": _safely(folder, "authority", "stranger"),
        "other_certificate": _safely(folder, "stranger", "prometheus"),
        "plain": {},
    }
    with (
        started([_PYTHON], "exact_count.py") as workload,
        serving("-p", str(workload.pid), "--web.config.file", f"{folder}/web.yml") as service,
        prometheus(
            *(
                scraping(f"{service.host}:{service.port}", job, **how)
                for job, how in options.items()
            )
        ) as server,
    ):
        assert service.url.startswith("https://")
        eventually(lambda: server.now("up").labels("job") == set(options))

        assert {"right"} == server.now("up == 1").labels("job")
        valid = server.now("gilscope_probe_valid")
        assert [1.0] == valid.values()
        assert {str(workload.pid)} == valid.labels("pid")
        scraped = server.now("max_over_time(gilscope_agent_private_bytes[1m])")
        (private,) = scraped.values()
        assert private < 40e6


def test_a_file_that_is_no_good_ends_it_at_once(folder: Path) -> None:
    """
    Exit code 11, before anything is traced, with the place and what to do.
    """
    path = folder / "wrong.yml"
    path.write_text("tls_server_config:\n  cert_file: x\n")

    outcome = gilscope("serve", "--all", "--web.config.file", str(path))

    assert (11, "") == (outcome.exit_code, outcome.output)
    assert [
        f"error: {path}, line 2: tls_server_config: there is neither key_file nor key",
        "The format is that of Prometheus' exporters; gilscope-serve(8) says what of it works.",
    ] == outcome.messages.splitlines()


def test_a_package_that_is_missing_is_named(folder: Path) -> None:
    """
    An installation without the extra says how to get it.
    """
    (folder / "bcrypt.py").write_text("raise ModuleNotFoundError(name='bcrypt')")

    outcome = gilscope(
        "serve", "--all", "--web.config.file", "web.yml", extra={"PYTHONPATH": str(folder)}
    )

    assert 11 == outcome.exit_code
    assert "error: --web.config.file needs the Python package bcrypt" in outcome.messages
    assert "pip install 'gilscope[web]'" in outcome.messages
