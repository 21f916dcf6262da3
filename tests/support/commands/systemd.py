"""Starts units under a systemd of their own, which is pid 1 of a namespace of its own."""

import os
import shlex
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.commands.gilscope import eventually
from support.paths import ROOT

__all__ = ["CHECKOUT", "systemd"]

CHECKOUT = Path("/opt/checkout")
"""Where units see this checkout, which may itself lie in a folder that they hide."""

_PROGRAM = Path("/lib/systemd/systemd")
_TARGET = "[Unit]\nDefaultDependencies=no\nRequires={units}\n"
_COMMAND = f"""\
#!/bin/sh
export PYTHONPATH={CHECKOUT}/agent
[ ! -e {CHECKOUT}/.cache/headers ] || export BCC_KERNEL_SOURCE={CHECKOUT}/.cache/headers
exec {CHECKOUT}/.venv/bin/python -m gilscope "$@"
"""
# It makes its cgroups below one of its own, and finds nothing of this machine in /run.
_BEGINNING = """\
set -e
mount --make-rprivate /
mount -t tmpfs tmpfs /opt
mkdir -p {checkout} /opt/gilscope/bin
mount --bind {root} {checkout}
install -m 755 {folder}/gilscope /opt/gilscope/bin/gilscope
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /var/cache
mount -t cgroup2 cgroup2 /mnt
mkdir /mnt/{group}
echo $$ >/mnt/{group}/cgroup.procs
umount /mnt
export SYSTEMD_UNIT_PATH={folder}/units
# Whoever is in a container leaves the settings of the machine alone.
export container=test
exec unshare --cgroup sh -c 'mount -t tmpfs tmpfs /sys/fs/cgroup &&
    mount -t cgroup2 cgroup2 /sys/fs/cgroup &&
    exec {program} --system --unit=wanted.target --show-status=no'
"""
_END = "mount -t cgroup2 cgroup2 /mnt && find /mnt/{group} -depth -type d -exec rmdir {{}} +"


@contextmanager
def systemd(units: Mapping[str, str]) -> Iterator[None]:
    """Have systemd start *units*, texts by name, until the block has ended.

    The installation in /opt/gilscope is this checkout.
    """
    if not _PROGRAM.exists():
        reason = "there is no systemd (see install_packages in deploy/setup/install.sh)"
        if os.environ.get("CI") == "true":
            pytest.fail(reason, pytrace=False)
        pytest.skip(reason)
    group = f"gilscope-test-{os.getpid()}"
    with tempfile.TemporaryDirectory(dir="/var/lib") as name:
        folder = Path(name)
        (folder / "gilscope").write_text(_COMMAND)
        (folder / "units").mkdir()
        wanted = {"wanted.target": _TARGET.format(units=" ".join(units))}
        for unit, text in {**units, **wanted}.items():
            (folder / "units" / unit).write_text(text)
        beginning = _BEGINNING.format(
            checkout=CHECKOUT,
            root=shlex.quote(str(ROOT)),
            folder=folder,
            group=group,
            program=_PROGRAM,
        )
        namespaces = ("--pid", "--mount", "--uts", "--ipc", "--fork", "--mount-proc")
        command = ["unshare", *namespaces, "--kill-child", "sh", "-c", beginning]
        with subprocess.Popen(command, stdin=subprocess.DEVNULL) as process:
            try:
                yield
                assert process.poll() is None
            finally:
                process.kill()
                process.wait()
                # Its processes end a little later.
                end = ["unshare", "--mount", "sh", "-c", _END.format(group=group)]
                eventually(
                    lambda: (
                        0 == subprocess.run(end, stderr=subprocess.DEVNULL, check=False).returncode
                    )
                )
