"""What the image is made from, and the seccomp profile that it runs under: as files."""

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

from support.containers.images import SIDECAR
from support.paths import ROOT

_DEPLOY = ROOT / "deploy"
_RUNTIME_PROFILE = Path("/usr/share/containers/seccomp.json")
_PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
_OPTIONAL = _PROJECT["project"]["optional-dependencies"]
_NEEDED = [*_PROJECT["project"]["dependencies"], *_OPTIONAL["web"]]
_CALLS = {"bpf", "perf_event_open"}


def _pins(name: str) -> dict[str, str]:
    text = (_DEPLOY / "image" / name).read_text()
    return dict(
        re.findall(r"^([a-z0-9-]+)==(\S+) \\\n +--hash=sha256:[0-9a-f]{64}$", text, re.MULTILINE)
    )


def test_hadolint_has_nothing_to_say() -> None:
    """
    The linter of Dockerfiles finds nothing but what the file itself excuses.
    """
    linted = subprocess.run(
        [Path(sys.executable).with_name("hadolint"), ROOT / "Dockerfile"],
        capture_output=True,
        text=True,
        check=False,
    )

    assert (0, "") == (linted.returncode, linted.stdout)


@pytest.mark.parametrize(
    ("name", "needed"),
    [
        ("requirements.txt", _NEEDED),
        ("build-requirements.txt", _PROJECT["build-system"]["requires"]),
    ],
)
def test_pins_are_what_the_project_asks_for(name: str, needed: list[str]) -> None:
    """
    Each requirement of the project is pinned to a version that it allows.
    """
    pins = _pins(name)

    for requirement in map(Requirement, needed):
        assert pins[requirement.name.lower()] in requirement.specifier


def test_the_profile_allows_two_calls_in_any_case() -> None:
    """
    Whoever has the capabilities may call bpf and perf_event_open: no rule about them has terms.
    """
    rules = _profile()["syscalls"]

    assert "SCMP_ACT_ERRNO" == _profile()["defaultAction"]
    assert [{"names": sorted(_CALLS), "action": "SCMP_ACT_ALLOW"}] == [
        rule for rule in rules if _CALLS & set(rule["names"])
    ]


def test_the_profile_allows_neither_mounts_nor_namespaces() -> None:
    """
    What Podman lets containers in containers do is left out.
    """
    allowed = {
        name
        for rule in _profile()["syscalls"]
        if rule["action"] == "SCMP_ACT_ALLOW"
        for name in rule["names"]
    }

    assert set() == {"keyctl", "mount", "pivot_root", "setns", "umount2", "unshare"} & allowed


def test_the_profile_has_no_conditions() -> None:
    """
    Runtimes that do not know conditions on capabilities and processors read it as others do.
    """
    keys = {key for rule in _profile()["syscalls"] for key in rule}

    assert {"names", "action", "args", "errnoRet"} == keys
    assert "archMap" not in _profile()


def test_the_profile_is_the_runtimes_own_but_for_that() -> None:
    """
    Made again from the profile of this machine's runtime it is the same.
    """
    if not _RUNTIME_PROFILE.exists():
        reason = f"{_RUNTIME_PROFILE} is not there: deploy/setup/install.sh containers"
        if os.environ.get("CI") == "true":
            pytest.fail(reason, pytrace=False)
        pytest.skip(reason)
    command = [sys.executable, str(_DEPLOY / "seccomp" / "make.py"), str(_RUNTIME_PROFILE)]
    made = subprocess.run(command, capture_output=True, text=True, check=True)

    assert made.stdout == (_DEPLOY / "seccomp" / "gilscope.json").read_text()


def test_the_page_shows_the_options_that_are_tested() -> None:
    """
    The command line of docs/container.md has the options under which the tests run the image.
    """
    page = (ROOT / "docs" / "container.md").read_text()
    (line,) = [line for line in page.splitlines() if line.startswith("docker run ")]
    shown = re.sub(r"(--\S+) (?!--)(\S+)", r"\1=\2", line).split()
    tested = [option.replace(f"{ROOT}/", "") for option in SIDECAR]

    assert tested == [option for option in shown if option in tested]
    assert {"--name=gilscope", "--pid=container:web", "--publish=127.0.0.1:9845:9845"} == {
        option for option in shown if option.startswith("--") and option not in tested
    }


def _profile() -> dict[str, Any]:
    profile: dict[str, Any] = json.loads((_DEPLOY / "seccomp" / "gilscope.json").read_text())
    return profile
