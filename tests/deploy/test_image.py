"""The image, built for real, and run for real beside a container with a Python in it.

What is in it is the matter of test_image_contents.py.
The base is made from packages of the distribution under the name that the Dockerfile asks for: it
is like the official image of that name, and not that image (see support/containers/images.py).
"""

import json
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from accuracy.truth import Workload, exact_counts, started
from gilscope.bpf.loader import ENVIRONMENT
from support.commands.doctor import found, missing, running
from support.commands.gilscope import Outcome, eventually, line_started
from support.commands.serve import Service, service_of
from support.containers.images import SIDECAR, base_image, built_image, container, let_go, podman
from support.containers.machine import compiled_folder
from support.interpreters.builds import build
from support.paths import WORKLOADS
from support.tracing.trace import command_of

pytestmark = [pytest.mark.live, pytest.mark.slow]

# With BCC there is what compiles, and the compiled programs as well, which are passed over.
_BCC = f"--env={ENVIRONMENT}=bcc"
_SERVE = ("serve", "--all", "--per-process", "--listen", "127.0.0.1:0")
_WITHOUT_PROFILE = tuple(option for option in SIDECAR if not option.startswith("--security"))


@dataclass(frozen=True, slots=True)
class _Target:
    """A container with a Python that has a known answer, and waits to begin."""

    name: str
    workload: Workload

    @property
    def beside(self) -> str:
        """The option of a container that is to share its pid namespace."""
        return f"--pid=container:{self.name}"


@contextmanager
def _target() -> Iterator[_Target]:
    """Run an interpreter that the base image does not have, and that the agent's cannot see."""
    interpreter = build("pyenv-3.12")
    prefix = str(Path(interpreter.argv[0]).parents[1])
    volumes = [f"--volume={path}:{path}:ro" for path in (prefix, str(WORKLOADS))]
    compiled = compiled_folder()
    volumes.append(f"--volume={compiled}:{compiled}")
    # Real-time priority keeps the scheduler out of what is measured.
    with (
        container(base_image(), *volumes, "--cap-add=SYS_NICE") as (name, words),
        started([*words, *command_of(interpreter)], "exact_count.py") as workload,
    ):
        yield _Target(name, workload)


@pytest.fixture(scope="module", autouse=True)
def _storage() -> Iterator[None]:
    """Leave the folder of the images as it was."""
    yield
    let_go()


@pytest.fixture(scope="module")
def target() -> Iterator[_Target]:
    """A target for tests that do not let it begin."""
    with _target() as target:
        yield target


def _image(*, with_bcc: bool) -> tuple[str, ...]:
    """Return the words of a container: the image, behind what has that with BCC use it."""
    return (built_image(with_bcc=with_bcc), *([_BCC] if with_bcc else ()))


def _run(
    *arguments: str, options: Sequence[str], entrypoint: str = "gilscope", with_bcc: bool = False
) -> Outcome:
    """Run the image to its end."""
    image = _image(with_bcc=with_bcc)
    with (
        container(*image, f"--entrypoint={entrypoint}", *options) as (_, words),
        line_started([*words, *arguments]) as command,
    ):
        return command.outcome()


def _doctor(*arguments: str, options: Sequence[str], with_bcc: bool = False) -> dict[str, Any]:
    command = ("doctor", "--format", "json", *arguments)
    outcome = _run(*command, options=options, with_bcc=with_bcc)
    report: dict[str, Any] = json.loads(outcome.output)
    return report


@contextmanager
def _serving(*options: str, with_bcc: bool = False) -> Iterator[tuple[str, Service]]:
    with (
        container(*_image(with_bcc=with_bcc), *options) as (name, words),
        line_started([*words, *_SERVE]) as command,
    ):
        yield name, service_of(command)


@pytest.mark.parametrize("with_bcc", [False, True], ids=["small", "with_bcc"])
def test_a_sidecar_counts_what_its_target_knows(*, with_bcc: bool) -> None:
    """
    With three capabilities, a read-only root and the shipped profile, every wait is counted.
    """
    # A target of its own: should the test be made again, it has to begin again.
    with (
        _target() as target,
        _serving(*SIDECAR, target.beside, with_bcc=with_bcc) as (_, service),
    ):
        eventually(lambda: service.scrape().pids() == {target.workload.pid}, within_s=20)
        truth = exact_counts(target.workload.run())
        scrape = service.scrape()
        outcome = service.end()
    name = "gilscope_gil_thread_waits_total"
    roles = {sample.labels["role"] for sample in scrape.samples(name)}
    (role,) = [role for role in roles if role.startswith("waiter (")]

    # In the namespace of its container the workload is process 1.
    assert 1 == target.workload.pid
    assert 23 == scrape.total(name, role=role)
    lost_s = scrape.total("gilscope_gil_thread_wait_seconds_total", role=role)
    assert lost_s == pytest.approx(truth.waiter.total.wait_ns / 1e9, rel=0.02)
    assert 1 == scrape.total("gilscope_targets", state="traced")
    assert 0 == scrape.total("gilscope_lost_events_total")
    # SIGTERM, as a runtime sends it.
    assert 0 == outcome.exit_code


def test_doctor_is_content_in_a_sidecar(target: _Target) -> None:
    """
    Nothing to compile is needed, tracefs is not there and not missed, and no check complains.
    """
    report = _doctor("-p", "1", options=(*SIDECAR, target.beside))
    came_compiled = "not needed: the probes came compiled with gilscope"

    assert (0, [], []) == (report["exit_code"], missing(report), missing(report["process"]))
    assert "not mounted; gilscope does not use it" == found(report, "tracefs")
    for check in ("kernel_headers", "bcc", "program_cache"):
        assert came_compiled == found(report, check)
    assert "a filter on the agent lets bpf pass" == found(report, "seccomp")
    assert {"ok"} == {check["status"] for check in report["checks"]}


def test_with_bcc_there_is_what_compiles(target: _Target) -> None:
    """
    Where compiled programs are passed over, headers come from the image, and no check complains.
    """
    report = _doctor("-p", "1", options=(*SIDECAR, target.beside), with_bcc=True)

    assert (0, [], []) == (report["exit_code"], missing(report), missing(report["process"]))
    assert found(report, "kernel_headers").endswith("/gilscope/headers")
    assert found(report, "bcc").endswith(", in /opt/gilscope/bin/python")
    assert found(report, "program_cache").endswith(" in /tmp/gilscope")
    assert {"ok"} == {check["status"] for check in report["checks"]}


def test_a_process_of_the_host_is_recorded() -> None:
    """
    In the pid namespace of the host, `record` counts each convoy of a program outside.
    """
    interpreter = build("pyenv-3.12")
    with started(command_of(interpreter), "exact_count.py") as workload:
        words = ("record", "--full", "-p", str(workload.pid))
        with (
            container(built_image(), *SIDECAR, "--pid=host") as (_, podman_run),
            line_started([*podman_run, *words]) as command,
        ):
            command.says("Tracing the GIL of")
            truth = exact_counts(workload.run())
            workload.finish()
            outcome = command.outcome()

    assert 0 == outcome.exit_code, outcome.messages
    assert f"({truth.waiter.convoy_waits}x GIL_CONVOY)" in outcome.output


def test_the_profile_of_the_runtime(target: _Target) -> None:
    """
    The runtime's own seccomp profile forbids bpf whatever the capabilities, and is blamed for it.
    """
    outcome = _run(*_SERVE, options=(*_WITHOUT_PROFILE, target.beside))

    assert (5, "") == (outcome.exit_code, outcome.output)
    assert [
        (
            "error: the kernel refused gilscope's BPF programs: a seccomp filter on the agent "
            "answers EPERM (Operation not permitted) to bpf"
        ),
        (
            "podman run --security-opt seccomp=unconfined ...; "
            "or a profile that also allows bpf: deploy/seccomp/gilscope.json"
        ),
    ] == outcome.messages.splitlines()


def test_doctor_under_the_profile_of_the_runtime(target: _Target) -> None:
    """
    Doctor names the same cause first.
    """
    report = _doctor(options=(*_WITHOUT_PROFILE, target.beside))

    assert (5, "seccomp") == (report["exit_code"], missing(report)[0])


@pytest.mark.parametrize(
    ("name", "arguments"),
    [("BPF", _SERVE), ("PERFMON", ("record", "-p", "1")), ("SYS_PTRACE", _SERVE)],
    ids=["bpf", "perfmon", "sys_ptrace"],
)
def test_a_capability_that_is_missing(target: _Target, name: str, arguments: Sequence[str]) -> None:
    """
    The one that is missing is named, and the option that adds it.
    """
    options = tuple(option for option in SIDECAR if option != f"--cap-add={name}")
    outcome = _run(*arguments, options=(*options, target.beside))
    error, remedy = outcome.messages.splitlines()

    assert 5 == outcome.exit_code
    assert f"CAP_{name} is missing" in error
    assert f"podman run --cap-add {name} ..." == remedy


def test_a_pid_of_the_host(target: _Target) -> None:
    """
    Who names a process by its pid outside of the shared namespace is told that pids differ.
    """
    outcome = _run("record", "-p", "4711", options=(*SIDECAR, target.beside))

    assert (3, 2) == (outcome.exit_code, len(outcome.messages.splitlines()))
    assert (
        "error: there is no process 4711 in the agent's pid namespace, where pids are others than "
        "on the host"
    ) == outcome.messages.splitlines()[0]


def test_the_process_of_another_user() -> None:
    """
    Root of a sidecar needs one capability more, and so its log says; the user's own agent does not.
    """
    user = "--user=65532"
    script = "import sys; print('ready', flush=True); sys.stdin.read()"
    with (
        container(built_image(), user, "--entrypoint=python3") as (name, words),
        running([*words, "-c", script]),
    ):
        beside = f"--pid=container:{name}"
        with _serving(*SIDECAR, beside) as (_, service):
            told = service.command.says("not traced: ")
        own = _run("record", "-p", "1", "-d", "0.1", options=(*SIDECAR, beside, user))

    assert told.endswith(
        ": CAP_DAC_READ_SEARCH is missing, and the process is of user 65532; "
        "podman run --cap-add DAC_READ_SEARCH ..."
    )
    assert 0 == own.exit_code


@pytest.mark.parametrize("arguments", [_SERVE, ("record", "-p", "4711")], ids=["serve", "record"])
def test_a_pid_namespace_that_is_not_shared(arguments: Sequence[str]) -> None:
    """
    An agent that can never see another process ends at once, and says how to share a namespace.
    """
    outcome = _run(*arguments, options=SIDECAR)

    assert 13 == outcome.exit_code
    assert [
        "error: gilscope is alone in a pid namespace of its own: there is nothing to trace",
        "podman run --pid container:TARGET ... (one container) or podman run --pid host ... (all)",
    ] == outcome.messages.splitlines()


def test_process_1_ends_when_it_is_told_to() -> None:
    """
    As process 1, whom signals reach only if it is prepared, the agent ends at SIGTERM.
    """
    with container(built_image(), *SIDECAR) as (name, words):
        logs = ("serve", "--stm-log", "/tmp/*.stm", "--listen", "127.0.0.1:0")
        with line_started([*words, *logs]) as command:
            service_of(command)
            subprocess.run(podman("kill", "--signal=TERM", name), check=True, capture_output=True)
            outcome = command.outcome()

    assert 0 == outcome.exit_code
