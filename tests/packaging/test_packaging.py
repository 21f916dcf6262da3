"""Tests that what is built holds what the checkout holds."""

import importlib.util
import os
import shutil
import subprocess
import sys
import venv
import zipfile
from contextlib import suppress
from email.parser import Parser
from pathlib import Path

import markupsafe
import pytest

from accuracy.truth import exact_counts, started
from gilscope import __version__
from gilscope.assets.bundles import kubernetes, provisioning
from gilscope.bpf.compile.ahead import AHEAD
from gilscope.bpf.loader import compile_ahead
from gilscope.errors import KernelOrBccMissing, NotPermitted
from gilscope.gil.probes import program as gil
from gilscope.transactions import program as transactions
from support.commands.gilscope import line_started
from support.docs.pages import DOCS
from support.paths import AGENT, ROOT


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """Return the wheel made from the source distribution, as a release is made.

    It brings compiled programs where this user may have them compiled.
    """
    folder = tmp_path_factory.mktemp("dist")
    _build("--sdist", ROOT, folder)
    (sources,) = folder.glob("*.tar.gz")
    shutil.unpack_archive(sources, folder)
    tree = folder / sources.name.removesuffix(".tar.gz")
    with suppress(KernelOrBccMissing, NotPermitted):
        for request in (gil.whole_request(), transactions.whole_request()):
            compile_ahead(request, tree / AHEAD.relative_to(ROOT))
    _build("--wheel", tree, folder)
    (path,) = folder.glob("*.whl")
    return zipfile.ZipFile(path)


def _build(form: str, sources: Path, folder: Path) -> None:
    command = [sys.executable, "-m", "build", "--no-isolation", form, "--outdir", str(folder)]
    built = subprocess.run([*command, str(sources)], check=False, capture_output=True, text=True)
    assert 0 == built.returncode, built.stdout + built.stderr


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


@pytest.mark.live
@pytest.mark.beside_others
def test_an_installation_needs_no_compiler(wheel: zipfile.ZipFile, tmp_path: Path) -> None:
    """
    In an environment that has no BCC, on a machine where no Python has it, a recording is made.
    """
    python = tmp_path / "venv" / "bin" / "python"
    venv.create(tmp_path / "venv")
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet"]
    subprocess.run([*pip, "--no-index", "--no-deps", str(wheel.filename)], check=True)
    # Its dependencies are those of this environment, which are not fetched again.
    (site,) = python.parents[1].glob("lib/python*/site-packages")
    (site / "dependencies.pth").write_text(f"{Path(markupsafe.__file__).parents[1]}\n")
    for folder in ("gone", "nowhere"):
        (tmp_path / folder).mkdir()
    (tmp_path / "gone" / "__init__.py").write_text("raise ImportError('gone')")
    bcc = importlib.util.find_spec("bcc")
    assert bcc is not None
    assert bcc.origin is not None
    script = 'mount --bind "$1" "$2" && shift 2 && exec "$@"'
    hidden = ("unshare", "--mount", "sh", "-c", script, "sh")
    wrapper = [*hidden, str(tmp_path / "gone"), str(Path(bcc.origin).parent)]
    environment = {"PATH": os.environ["PATH"], "XDG_CACHE_HOME": str(tmp_path / "nowhere")}

    with started(["/usr/bin/python3"], "exact_count.py") as workload:
        record = [*wrapper, str(python.with_name("gilscope")), "record", "--full"]
        with line_started([*record, "-p", str(workload.pid)], environment) as command:
            command.says("Tracing the GIL of")
            truth = exact_counts(workload.run())
            workload.finish()
            outcome = command.outcome()

    assert 0 == outcome.exit_code, outcome.messages
    assert f"({truth.waiter.convoy_waits}x GIL_CONVOY)" in outcome.output


def test_the_wheel_does_not_ask_for_the_other_bcc(wheel: zipfile.ZipFile) -> None:
    """
    PyPI's bcc is not the BPF compiler and would hide the distribution's.
    """
    metadata = Parser().parsestr(wheel.read(f"gilscope-{__version__}.dist-info/METADATA").decode())

    wanted = metadata.get_all("Requires-Dist", [])

    assert [] == [requirement for requirement in wanted if requirement.startswith("bcc")]
