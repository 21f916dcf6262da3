"""Tests that what is built holds what the checkout holds."""

import subprocess
import sys
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

from gilscope import __version__
from gilscope.assets.bundles import kubernetes, provisioning
from support.docs.pages import DOCS
from support.paths import AGENT, ROOT


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """Return the wheel made from the source distribution, as an installer would make it."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    built = subprocess.run(command, check=False, capture_output=True, text=True)
    assert 0 == built.returncode, built.stdout + built.stderr
    (path,) = folder.glob("*.whl")
    return zipfile.ZipFile(path)


def _files_below(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


@pytest.mark.parametrize(
    "folder",
    [
        "probes",
        "dashboards/grafana",
        "dashboards/rules",
        "deploy/grafana",
        "deploy/prometheus-operator",
    ],
)
def test_the_wheel_ships_the_folder_as_it_is(wheel: zipfile.ZipFile, folder: str) -> None:
    """
    The wheel's probes, dashboards and manifests are the checkout's, byte for byte, and no others.
    """
    prefix = f"gilscope/{folder}/"

    shipped = {
        name.removeprefix(prefix): wheel.read(name)
        for name in wheel.namelist()
        if name.startswith(prefix)
    }

    assert _files_below(ROOT / folder) == shipped


def test_the_wheel_brings_pages_and_completions(wheel: zipfile.ZipFile) -> None:
    """
    Where man and the shells look for them.
    """
    prefix = f"gilscope-{__version__}.data/data/share/"
    brought = {
        name.removeprefix(prefix): wheel.read(name)
        for name in wheel.namelist()
        if name.startswith(prefix)
    }
    completions = ROOT / "deploy" / "completions"
    pages = {f"man/man8/{name}": page for name, page in _files_below(DOCS / "man" / "man8").items()}

    assert brought == pages | {
        "bash-completion/completions/gilscope": (completions / "gilscope").read_bytes(),
        "zsh/site-functions/_gilscope": (completions / "_gilscope").read_bytes(),
        "fish/vendor_completions.d/gilscope.fish": (completions / "gilscope.fish").read_bytes(),
    }


def test_the_wheel_ships_every_module(wheel: zipfile.ZipFile) -> None:
    """
    Every file of the package is in the wheel, the marker of its types included.
    """
    package = {f"gilscope/{name}" for name in _files_below(AGENT / "gilscope")}

    assert "gilscope/py.typed" in package
    assert set() == package - set(wheel.namelist())


@pytest.mark.parametrize(
    "module",
    [
        "gilscope.process._remote_memory",
        "gilscope.gil.tracing._lock_sampler",
        "gilscope.stm_log._stm_log",
    ],
)
def test_the_wheel_brings_what_is_compiled(
    wheel: zipfile.ZipFile, tmp_path: Path, module: str
) -> None:
    """
    Its modules written in C can be imported, by every Python from 3.11 on.
    """
    wheel.extractall(tmp_path)
    code = f"import {module} as native; print(native.__file__)"
    command = [sys.executable, "-S", "-c", code]
    imported = subprocess.run(
        command, check=True, capture_output=True, text=True, env={"PYTHONPATH": str(tmp_path)}
    )

    assert f"{tmp_path}/{module.replace('.', '/')}.abi3.so\n" == imported.stdout
    assert "-cp311-abi3-linux_" in Path(wheel.filename or "").name


def test_the_wheel_exports_what_it_ships(wheel: zipfile.ZipFile, tmp_path: Path) -> None:
    """
    Without a checkout, the same files that one exports.
    """
    wheel.extractall(tmp_path / "installed")
    code = (
        "import gilscope.assets.bundles as s; print(s.__file__, [s.provisioning(), s.kubernetes()])"
    )
    imported = subprocess.run(
        [sys.executable, "-S", "-c", code],
        check=True,
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(tmp_path / "installed")},
    )
    expected = [dict(provisioning()), dict(kubernetes())]

    assert f"{tmp_path}/installed/gilscope/assets/bundles.py {expected}\n" == imported.stdout


def test_the_wheel_starts_the_command_line(wheel: zipfile.ZipFile) -> None:
    """
    An installation has one command, gilscope, and the version that the package states.
    """
    dist_info = f"gilscope-{__version__}.dist-info"

    entry_points = wheel.read(f"{dist_info}/entry_points.txt").decode()

    assert (
        "[console_scripts]\ngilscope = gilscope.__main__:main\n\n"
        "[pytest11]\ngilscope = gilscope.pytest_plugin.plugin\n"
    ) == entry_points


def test_the_wheel_does_not_ask_for_the_other_bcc(wheel: zipfile.ZipFile) -> None:
    """
    PyPI's bcc is not the BPF compiler and would hide the distribution's.
    """
    metadata = Parser().parsestr(wheel.read(f"gilscope-{__version__}.dist-info/METADATA").decode())

    wanted = metadata.get_all("Requires-Dist", [])

    assert [] == [requirement for requirement in wanted if requirement.startswith("bcc")]
