"""What is released, installed into bare systems in one line each: `make test-install`.

Each system is a container of Debian that has neither compiler nor kernel headers nor BCC. How soon
each gave its first report is printed; a time that has to be met is no matter of tests.
"""

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from accuracy.truth import exact_counts, started
from gilscope import __version__
from support.commands.gilscope import line_started
from support.containers.images import debian_image, let_go
from support.containers.machine import Machine, machine
from support.paths import ROOT

pytestmark = [pytest.mark.live, pytest.mark.slow, pytest.mark.timeout(600)]

_WHEEL = f"dist/gilscope-{__version__}-cp311-abi3-linux_x86_64.whl"
_DEB = f"dist/gilscope_{__version__}-1_amd64.deb"
_APT = "DEBIAN_FRONTEND=noninteractive apt-get -q --yes --no-install-recommends"
_PYTHON = "python3 python3-venv"
_UV = "python3 -m venv /opt/uv && /opt/uv/bin/pip install --quiet uv==0.13.9"
_ENVIRONMENT = "python3 -m venv /opt/gilscope"


_SUITES = ("bookworm", "trixie")
"""Debian 12 and 13, with CPython 3.11 and 3.13."""


@dataclass(frozen=True, slots=True)
class _Way:
    """One way to install the wheel."""

    name: str
    packages: str
    """Of Debian, that are there before."""
    before: str
    """What else has to be there, as a script."""
    line: str
    """What docs/install.md says."""
    gilscope: str
    """Where the command is then."""


_WAYS = (
    _Way(
        "pip",
        _PYTHON,
        "true",
        f"{_ENVIRONMENT} && /opt/gilscope/bin/pip install /{_WHEEL}",
        "/opt/gilscope/bin/gilscope",
    ),
    _Way(
        "pipx",
        f"{_PYTHON} pipx",
        "true",
        f"pipx install /{_WHEEL}",
        "/root/.local/bin/gilscope",
    ),
    _Way(
        "uv",
        _PYTHON,
        _UV,
        f"/opt/uv/bin/uv tool install /{_WHEEL}",
        "/root/.local/bin/gilscope",
    ),
)
# Of Debian's own scripts: what to do with the unit when the package comes back.
_NOTE = "/var/lib/systemd/deb-systemd-helper-enabled/gilscope.service.dsh-also"
_FILES = """
find / -xdev ! -type d ! -path '/proc/*' ! -path '/sys/*' ! -path '/var/lib/dpkg/*' \
    ! -path '/var/cache/*' ! -path '/var/log/*' ! -path '/tmp/*' ! -name '*.pyc' | sort
"""


@pytest.fixture(scope="module", autouse=True)
def _storage() -> Iterator[None]:
    """Leave the folder of the images as it was."""
    yield
    let_go()


@pytest.fixture(params=_SUITES)
def system(request: pytest.FixtureRequest) -> Iterator[Machine]:
    """A system without anything that gilscope may not need."""
    for released in (_WHEEL, _DEB):
        assert (ROOT / released).exists(), "make deb"
    with machine(debian_image(request.param)) as system:
        assert "" == system.run("for tool in gcc cc clang ld; do command -v $tool || :; done")
        assert "" == system.run("ls -d /usr/src/linux* /lib/modules/* 2>/dev/null || :")
        yield system


def _records_exactly(system: Machine, gilscope: str) -> None:
    """Record a program of the system that counts its waits itself."""
    with started([*system.words(), "python3"], "exact_count.py") as workload:
        words = [*system.words(), gilscope, "record", "--full", "-p", str(workload.pid)]
        with line_started(words) as command:
            command.says("Tracing the GIL of")
            truth = exact_counts(workload.run())
            workload.finish()
            outcome = command.outcome()

    assert 0 == outcome.exit_code, outcome.messages
    assert f"({truth.waiter.convoy_waits}x GIL_CONVOY)" in outcome.output


def _first_report(system: Machine, name: str, line: str, gilscope: str) -> str:
    """Install, record a program for the second that it runs, and print how long both took."""
    program = "import time; end = time.time() + 1\nwhile time.time() < end: pass"
    begin_s = time.monotonic()
    system.run(line)
    report = system.run(f"{gilscope} record -- python3 -c '{program}'")
    print(f"{name}: first report after {time.monotonic() - begin_s:.1f} s")  # noqa: T201 - shown
    return report


@pytest.mark.parametrize("way", _WAYS, ids=lambda way: way.name)
def test_a_wheel(system: Machine, way: _Way) -> None:
    """
    One line installs it with what it needs, and a recording counts what the program knows.
    """
    system.run(f"apt-get -q update && {_APT} install {way.packages} && {way.before}")
    report = _first_report(system, way.name, way.line, way.gilscope)

    assert re.search(r"\bGIL\b", report)
    assert f"gilscope {__version__}\n" == system.run(f"{way.gilscope} --version")
    _records_exactly(system, way.gilscope)


def test_the_python_of_the_system_is_not_written_to(system: Machine) -> None:
    """
    Outside of an environment pip refuses, as it does with every package (PEP 668).
    """
    system.run(f"apt-get -q update && {_APT} install python3 python3-pip")
    said = system.run(f"! pip install /{_WHEEL} 2>&1")

    assert "error: externally-managed-environment" in said


def test_a_debian_package(system: Machine) -> None:
    """
    Installed by apt it records, and its service is there but not enabled; purged, nothing stays.
    """
    system.run(f"apt-get -q update && {_APT} install python3")
    before = system.run(_FILES)
    report = _first_report(system, "deb", f"{_APT} install /{_DEB}", "gilscope")
    doctor = system.run("gilscope doctor")
    _records_exactly(system, "gilscope")
    enabled = system.run("find /etc -name '*gilscope*'")
    system.run("test -f /lib/systemd/system/gilscope.service")
    system.run(f"rm -rf /root/.cache; {_APT} remove gilscope")
    removed = system.run(_FILES)
    system.run("dpkg --purge gilscope")
    purged = system.run(_FILES)
    known = system.run("find /var/lib/dpkg /var/cache /var/lib/systemd -name '*gilscope*' || :")

    assert re.search(r"\bGIL\b", report)
    assert "missing" not in doctor
    assert "" == enabled
    assert {_NOTE} == {*removed.splitlines()} ^ {*before.splitlines()}
    assert before.splitlines() == purged.splitlines()
    assert "" == known


def test_the_page_has_the_lines_that_are_run() -> None:
    """
    docs/install.md says each of them, but for where the files and uv are.
    """
    lines = (ROOT / "docs" / "install.md").read_text().splitlines()
    run = [way.line.replace("/opt/uv/bin/", "").replace("/dist/", "") for way in _WAYS]

    assert [] == [line for line in run if line not in lines]
    assert f"apt-get install ./{_DEB.removeprefix('dist/')}" in lines
