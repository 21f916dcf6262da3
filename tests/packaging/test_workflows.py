"""What the repository's home does by itself, as far as it can be seen without that home."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from gilscope.bpf.compile.ahead import AHEAD
from support.paths import ROOT

_HOME = ROOT / ".github"
_WORKFLOWS = sorted((_HOME / "workflows").glob("*.yml"))
_PATH = re.compile(r"(?<![\w./-])(?:deploy|agent|\.ci)/[\w./-]+")


def _jobs(file: Path) -> dict[str, Any]:
    jobs: dict[str, Any] = yaml.safe_load(file.read_text())["jobs"]
    return jobs


def _commands(file: Path) -> Iterator[str]:
    for job in _jobs(file).values():
        yield from (step["run"] for step in job["steps"] if "run" in step)


@pytest.mark.parametrize("file", _WORKFLOWS, ids=lambda path: path.name)
def test_commands_use_files_that_are_there(file: Path) -> None:
    """
    What a workflow runs, and what it reads, is in the checkout.
    """
    names = {name for command in _commands(file) for name in _PATH.findall(command)}

    assert names
    assert set() == {name for name in names if not (ROOT / name).exists()}


@pytest.mark.parametrize("file", _WORKFLOWS, ids=lambda path: path.name)
def test_nothing_has_more_rights_than_it_needs(file: Path) -> None:
    """
    The rights of each workflow are to read; a job that writes says what.
    """
    assert {"contents": "read"} == yaml.safe_load(file.read_text())["permissions"]
    for name, job in _jobs(file).items():
        rights = job.get("permissions", {})
        assert "write-all" not in str(rights), name
        # The one that attaches files to a release runs nothing of the checkout.
        assert "write" != rights.get("contents") or "attach" == name
        assert "attach" != name or not any(
            "checkout" in step.get("uses", "") for step in job["steps"]
        )


def test_every_change_is_tested_as_everywhere() -> None:
    """
    By the one command, with which a live test that cannot run fails.
    """
    (job,) = _jobs(_HOME / "workflows" / "test.yml").values()
    (step,) = [each for each in job["steps"] if each.get("run") == ".ci/run"]

    assert {"CI": "true"} == step["env"]
    assert "--privileged" in job["container"]["options"]


def test_a_release_brings_the_compiled_probes() -> None:
    """
    Wheel and Debian package come from the one command that compiles them first.
    """
    makefile = (ROOT / "Makefile").read_text()
    commands = [
        step["run"]
        for step in _jobs(_HOME / "workflows" / "release.yml")["packages"]["steps"]
        if "run" in step
    ]

    assert "make deb" in commands
    assert re.search(r"^deb: wheel ", makefile, re.MULTILINE)
    assert re.search(r"^wheel: programs ", makefile, re.MULTILINE)
    assert not any("pip wheel" in command for command in commands)
    for probes in ("gil", "transactions"):
        assert any(f"grep -F gilscope/bpf/ahead/{probes}- " in command for command in commands)


def test_a_released_image_has_the_programs_of_the_wheel() -> None:
    """
    They are handed on by the job that compiles them, and the image is built where they are.
    """
    jobs = _jobs(_HOME / "workflows" / "release.yml")
    programs = {"name": "programs", "path": "agent/gilscope/bpf/ahead"}
    handed_on = [step.get("with", {}) for step in jobs["packages"]["steps"]]
    uses = [step["uses"].partition("@")[0] for step in jobs["image"]["steps"]]
    steps = dict(zip(uses, jobs["image"]["steps"], strict=True))

    assert ROOT / programs["path"] == AHEAD
    assert {**programs, "if-no-files-found": "error"} in handed_on
    assert "packages" == jobs["image"]["needs"]
    assert programs == steps["actions/download-artifact"]["with"]
    assert "." == steps["docker/build-push-action"]["with"]["context"]
    # A checkout removes what is not in it.
    assert (
        uses.index("actions/checkout")
        < uses.index("actions/download-artifact")
        < uses.index("docker/build-push-action")
    )


def test_an_image_is_built_with_programs_that_are_compiled_now() -> None:
    """
    Either image: the build itself may load no BPF programs.
    """
    makefile = (ROOT / "Makefile").read_text()

    for target in ("image", "image-with-bcc"):
        assert re.search(rf"^{target}: programs ", makefile, re.MULTILINE)


def test_a_release_says_what_it_is_made_of() -> None:
    """
    Packages and image are attested, and the image has a list of its parts.
    """
    jobs = _jobs(_HOME / "workflows" / "release.yml")
    (built,) = [
        step["with"] for step in jobs["image"]["steps"] if "build-push" in step.get("uses", "")
    ]

    assert (True, "mode=max") == (built["sbom"], built["provenance"])
    for name in ("packages", "image"):
        assert any(
            "attest-build-provenance" in step.get("uses", "") for step in jobs[name]["steps"]
        )


@pytest.mark.parametrize(
    "file", sorted((_HOME / "ISSUE_TEMPLATE").glob("[!c]*.yml")), ids=lambda path: path.name
)
def test_forms_ask_for_what_helps(file: Path) -> None:
    """
    Each has a name, says when it is meant, and has a field that has to be filled.
    """
    form = yaml.safe_load(file.read_text())
    fields = [each for each in form["body"] if each["type"] in ("textarea", "input")]

    assert form["name"]
    assert form["description"]
    assert any(each.get("validations", {}).get("required") for each in fields)
    assert len(fields) == len({each["id"] for each in fields})
