"""The plugin in a run of pytest that does not ask for it."""

import subprocess
import sys

from support.paths import AGENT

_IMPORTED = """\
import sys
import pytest
before = set(sys.modules)
import gilscope.pytest_plugin.plugin
print(*sorted(name for name in set(sys.modules) - before if "." not in name))
print(*sorted(name for name in sys.modules if name.startswith("gilscope.")))
"""


def test_importing_it_is_cheap() -> None:
    """
    It is imported in every run of pytest: nothing of tracing comes along, and no other package.
    """
    shown = subprocess.run(
        [sys.executable, "-c", _IMPORTED],
        env={"PYTHONPATH": str(AGENT)},
        capture_output=True,
        text=True,
        check=True,
    )
    packages, modules = (line.split() for line in shown.stdout.splitlines())

    assert {"gilscope"} == set(packages)
    assert [
        "gilscope.commands",
        "gilscope.commands.numbers",
        "gilscope.pytest_plugin",
        "gilscope.pytest_plugin.figures",
        "gilscope.pytest_plugin.own_tracer",
        "gilscope.pytest_plugin.plugin",
        "gilscope.text",
        "gilscope.text.units",
        "gilscope.values",
    ] == modules
