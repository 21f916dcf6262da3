"""Finds the programs of Prometheus and Alertmanager that the set-up has fetched."""

import os
import shutil
from pathlib import Path

import pytest

from support.paths import ROOT

__all__ = ["alertmanager_command", "prometheus_tool"]

_FETCHED = ROOT / ".cache" / "tools" / "usr" / "bin"


def prometheus_tool(name: str) -> str:
    """Return the path of the program *name*; without it skip the test, or fail it in CI."""
    found = shutil.which(name) or shutil.which(name, path=str(_FETCHED))
    if found is None:
        reason = f"{name} could not be fetched (see get_monitoring in deploy/setup/install.sh)"
        if os.environ.get("CI") == "true":
            pytest.fail(reason, pytrace=False)
        pytest.skip(reason)
    return found


def alertmanager_command() -> tuple[str, ...]:
    """Return the words that start Alertmanager; as for `prometheus_tool`, there may be none."""
    program = prometheus_tool("prometheus-alertmanager")
    if not Path(program).is_relative_to(_FETCHED):
        return (program,)
    # Debian's looks for its templates below /usr/share, where they are not if it is unpacked alone.
    share = _FETCHED.parent / "share"
    bind = 'mount --bind "$0" /usr/share && exec "$@"'
    return ("unshare", "--mount", "sh", "-c", bind, str(share), program)
