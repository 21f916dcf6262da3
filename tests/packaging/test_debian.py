"""What the Debian package is made from; tests/install installs it."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

from support.paths import ROOT

_DEBIAN = ROOT / "deploy" / "debian"
_LIBRARY = "/usr/lib/gilscope"
_MODULES = {
    "linkify-it-py": "linkify_it",
    "markdown-it-py": "markdown_it",
    "mdit-py-plugins": "mdit_py_plugins",
    "prometheus-client": "prometheus_client",
    "pyyaml": "yaml",
    "typing-extensions": "typing_extensions",
}


def test_each_package_that_comes_with_it_has_its_licence() -> None:
    """
    What pip puts into the package is in debian/copyright, with a licence whose text is there.
    """
    pins = (ROOT / "deploy" / "image" / "requirements.txt").read_text()
    names = re.findall(r"^([a-z0-9-]+)==", pins, re.MULTILINE)
    text = (_DEBIAN / "copyright").read_text()
    part = r"^Files: usr/lib/gilscope/(\w+)\S*.*\n(?:.+\n)*?License: (\S+)"
    parts = dict(re.findall(part, text, re.MULTILINE))
    texts = re.findall(r"^License: (\S+)\n (?=\S)", text, re.MULTILINE)

    assert set() == {_MODULES.get(name, name) for name in names} - set(parts)
    assert set() == set(parts.values()) - set(texts)


def test_the_command_uses_what_came_with_it(tmp_path: Path) -> None:
    """
    Its folder comes before what the system's Python has, and PYTHONPATH does not matter.
    """
    package = tmp_path / "library" / "gilscope"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "__main__.py").write_text("def main():\n    print('ours')\n    return 3\n")
    (tmp_path / "gilscope.py").write_text("raise SystemError")
    command = tmp_path / "command"
    text = (_DEBIAN / "gilscope").read_text()
    command.write_text(text.replace(_LIBRARY, str(tmp_path / "library")))
    first, *_ = text.splitlines()
    done = subprocess.run(
        [sys.executable, *first.split()[1:], str(command)],
        env={"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert "#!/usr/bin/python3 -I" == first
    assert (3, "ours\n", "") == (done.returncode, done.stdout, done.stderr)


def test_the_oldest_python_is_the_projects() -> None:
    """
    The package asks for the Python that the wheel asks for.
    """
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = project["requires-python"].removeprefix(">=")

    assert f"Depends: python3 (>= {wanted})," in (_DEBIAN / "control").read_text()
