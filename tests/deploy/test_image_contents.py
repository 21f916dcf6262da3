"""What is in the image, as it was built: how large it is, its programs, and that Python works."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.commands.gilscope import Outcome, line_started
from support.containers.images import (
    SIDECAR,
    built_image,
    container,
    let_go,
    podman,
    unpacked_bytes,
)
from support.paths import ROOT

pytestmark = [pytest.mark.live, pytest.mark.slow]

_MOST_BYTES = 120_000_000
_PROGRAMS = """
import json, os
folders = {*os.environ["PATH"].split(":"), "/usr/bin", "/usr/sbin", "/usr/local/bin"}
present = [os.path.join(folder, name) for folder in folders if os.path.isdir(folder)
    for name in os.listdir(folder)]
print(json.dumps(sorted(path for path in present if os.access(path, os.X_OK))))
"""
# Imports as gilscope's own process would, for some undo what others have done.
_IMPORTS = """
import importlib, json, pkgutil, sys, gilscope
names = {*sys.stdlib_module_names} - {"antigravity", "this"}
names |= {each.name for each in pkgutil.walk_packages(gilscope.__path__, "gilscope.")}
absent = {}
for name in sorted(names):
    try:
        importlib.import_module(name)
    except ImportError as error:
        absent[name] = error.name or str(error)
print(json.dumps(absent))
"""
_OF_OTHER_SYSTEMS = {
    *("_msi", "_overlapped", "_scproxy", "_winapi", "msilib", "msvcrt", "nt", "winreg", "winsound")
}
# Of Debian these are packages of their own, or packages that nothing here needs.
_LEFT_OUT = {
    *("_crypt", "_curses", "_curses_panel", "_dbm", "_gdbm", "_pydecimal", "_sqlite3", "_tkinter"),
    *("_uuid", "cgitb", "crypt", "curses", "distutils", "ensurepip", "idlelib", "lib2to3", "nis"),
    *("pydoc", "pydoc_data", "readline", "sqlite3", "tkinter", "turtle", "turtledemo", "venv"),
}


@pytest.fixture(scope="module", autouse=True)
def _storage() -> Iterator[None]:
    """Leave the folder of the images as it was."""
    yield
    let_go()


def _said(script: str, *options: str, entrypoint: str = "python3", image: str = "") -> Outcome:
    """Return what *script* says in a container, which is one as documented but sees itself."""
    flags = (f"--entrypoint={entrypoint}", *SIDECAR, *options)
    with (
        container(image or built_image(), *flags) as (_, words),
        line_started([*words, "-c", script]) as command,
    ):
        return command.outcome()


def test_it_is_small() -> None:
    """
    Neither in whole blocks of a disk, nor as runtimes tell it, is it larger than 120 MB.
    """
    inspect = podman("image", "inspect", "--format={{.Size}}", built_image())
    told = subprocess.run(inspect, capture_output=True, text=True, check=True)

    assert int(told.stdout) <= _MOST_BYTES
    assert unpacked_bytes(built_image()) <= _MOST_BYTES


def test_it_has_python_and_a_shell() -> None:
    """
    These are all programs: no compiler, no package manager, and nothing to look around with.
    """
    programs = json.loads(_said(_PROGRAMS).output)
    ours = ("gilscope", "markdown-it", "pygmentize", "python", "python3", "python3.11")

    assert [
        *(f"/opt/gilscope/bin/{name}" for name in ours),
        *(f"/usr/bin/{name}" for name in ("dash", "python3", "python3.11", "sh")),
    ] == programs


def test_each_module_is_there_that_gilscope_needs() -> None:
    """
    All of gilscope is imported but its plugin, and of Python all but what was left out.
    """
    absent = json.loads(_said(_IMPORTS).output)

    assert "pytest" == absent.pop("gilscope.pytest_plugin.plugin")
    assert _LEFT_OUT | _OF_OTHER_SYSTEMS == set(absent)


def test_its_packages_are_known_to_scanners() -> None:
    """
    Each package has its record, by its name, and its licence.
    """
    script = """
import json, pathlib
records = pathlib.Path("/var/lib/dpkg/status.d")
print(json.dumps({
    each.name: [
        each.read_text().splitlines()[0],
        pathlib.Path("/usr/share/doc", each.name, "copyright").exists(),
    ]
    for each in records.iterdir()
}))
"""
    packages = json.loads(_said(script).output)

    assert {"libc6", "libssl3", "python3.11-minimal"} <= set(packages)
    for name, known in packages.items():
        assert [f"Package: {name}", True] == known


def test_its_network_is_as_everywhere() -> None:
    """
    Names are found in /etc/hosts, and certificates are verified by Debian's authorities.
    """
    script = (
        "import socket, ssl; print(socket.gethostbyname('known.example'), "
        "ssl.create_default_context().cert_store_stats()['x509_ca'])"
    )
    address, authorities = _said(script, "--add-host=known.example:127.9.9.9").output.split()

    assert "127.9.9.9" == address
    assert int(authorities) > 100


def test_it_runs_the_server_of_the_demonstration() -> None:
    """
    The compose file has the image run a server and its client, by its shell.
    """
    volume = f"--volume={ROOT / 'docs' / 'examples'}:/demo:ro"
    options = ("--workdir=/demo", "--user=65534:65534", volume)
    asks = (
        "import socket, sys; client = socket.socket(type=socket.SOCK_DGRAM); "
        "client.connect(('127.0.0.1', int(sys.argv[1]))); client.send(b'?'); "
        "print(len(client.recv(64)) > 0)"
    )
    # The server ends when nobody reads what it says.
    script = f'python3 quotes_before.py | {{ read -r port; python3 -c "{asks}" "$port"; kill 0; }}'
    outcome = _said(script, *options, entrypoint="/bin/sh")

    assert "True\n" == outcome.output, outcome.messages


def test_with_bcc_nothing_stays_of_what_built_it() -> None:
    """
    Neither a compiler nor pip nor lists of packages.
    """
    script = (
        "for tool in gcc cc ld pip pip3; do command -v $tool; done; "
        "ls -A /usr/src /var/lib/apt/lists /var/cache/apt/archives/*.deb; command -v gilscope"
    )
    outcome = _said(script, entrypoint="/bin/sh", image=built_image(with_bcc=True))

    assert ["/usr/src:", "", "/var/lib/apt/lists:", "/opt/gilscope/bin/gilscope"] == (
        outcome.output.splitlines()
    )


def test_a_checkout_without_programs_is_refused(tmp_path: Path) -> None:
    """
    Where `make programs` was not called, the build says so; here its condition is run.
    """
    text = (ROOT / "Dockerfile").read_text()
    condition = text.partition("RUN if ! ls ")[2].partition("    && tools")[0]
    script = "if ! ls " + condition.replace("\\\n", "\n")
    done = subprocess.run(
        ["sh", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False
    )

    assert 1 == done.returncode
    assert "image: error: this checkout has no compiled probes: make programs" in done.stderr
