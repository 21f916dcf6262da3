"""Builds the image of the Dockerfile, and runs containers, with buildah, podman and runc.

No registry is asked. What the Dockerfile takes for its base is made by mmdebstrap from packages of
the distribution; it is like the official image of that name, and not that image. Both images are
kept in ``.cache/containers`` until what they are made from changes.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest

from support.paths import AGENT, ROOT

__all__ = [
    "SIDECAR",
    "base_image",
    "built_image",
    "container",
    "debian_image",
    "let_go",
    "podman",
    "unpacked_bytes",
]

_FOLDER = ROOT / ".cache" / "containers"
_SHARING = "overlay"
_LABEL = "gilscope.test.made-from"
_TOOLS = ("buildah", "mmdebstrap", "podman", "runc")
_CERTIFICATES = Path("/etc/ssl/certs")

_PODMAN = ("--log-level=error", "--runtime=runc", "--cgroup-manager=cgroupfs")
_SECCOMP = ROOT / "deploy" / "seccomp" / "gilscope.json"
SIDECAR = (
    "--read-only",
    "--tmpfs=/tmp",
    "--cap-drop=ALL",
    "--cap-add=BPF",
    "--cap-add=PERFMON",
    "--cap-add=SYS_PTRACE",
    f"--security-opt=seccomp={_SECCOMP}",
)
"""The documented options, but for whose processes the agent sees."""

# As those of the official images: no documentation, no translations, no recommended packages, and
# no waiting for the disk.
_BASE_OPTIONS = (
    "--variant=minbase",
    "--include=ca-certificates",
    '--aptopt=APT::Install-Recommends "false"',
    '--aptopt=Acquire::Languages "none"',
    "--dpkgopt=force-unsafe-io",
    *(f"--dpkgopt=path-exclude=/usr/share/{name}/*" for name in ("doc", "locale", "man")),
)
# Podman raises limits, which takes CAP_SYS_RESOURCE, unless it is told what to set them to.
_LIMITS = ("--ulimit=nofile=4096:4096", "--ulimit=nproc=4096:4096")


def base_image() -> str:
    """Return the name of the image that the Dockerfile begins with, which is there then."""
    _require_tools()
    found = re.search(r"^ARG BASE=(\S+)$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    assert found is not None
    name = f"localhost/{found[1]}"
    return _base_of(name, "bookworm")


def debian_image(suite: str) -> str:
    """Return the name of an image of Debian's *suite*, which is there then."""
    _require_tools()
    return _base_of(f"localhost/debian:{suite}-slim", suite)


def _base_of(name: str, suite: str) -> str:
    digest = _digest([name, suite, *_BASE_OPTIONS])
    if not _is_current(name, digest):
        _make_base(name, suite, digest)
    return name


@cache
def built_image(*, with_bcc: bool = False) -> str:
    """Return the name of the image that the Dockerfile makes of this checkout.

    It brings the probes that are compiled now, and *with_bcc* what compiles others.
    """
    base = base_image()
    _compile_probes()
    name = f"localhost/gilscope:test{'-with-bcc' * with_bcc}"
    digest = _digest([name, _label(base), *_sources()])
    if not _is_current(name, digest):
        # What a build that was killed has left.
        _buildah("rm", "--all")
        if _driver() == _SHARING:
            # The builder's own name keeps what it has done so far from being pruned.
            _build(base, "--target=builder", "--tag=localhost/gilscope-builder:test")
        target = ("--target=with-bcc",) if with_bcc else ()
        _build(base, *target, f"--tag={name}", f"--label={_LABEL}={digest}")
        _buildah("rmi", "--prune")
    return name


def _compile_probes() -> None:
    # Those that are there may be of other sources.
    done = subprocess.run(
        [sys.executable, str(ROOT / "probes" / "compile_ahead.py")],
        env={**os.environ, "PYTHONPATH": str(AGENT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert 0 == done.returncode, done.stderr


def podman(*arguments: str) -> list[str]:
    """Return the command line of podman with *arguments*."""
    return ["podman", *_PODMAN, *_storage(), f"--tmpdir={_runtime() / 'tmp'}", *arguments]


@contextmanager
def container(image: str, *options: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the name of a container, and the words in front of what is to run in it.

    Whoever executes them starts it and is connected with it; it has ended when the block has.
    """
    name = f"gilscope-test-{uuid.uuid4().hex[:12]}"
    fixed = ("--rm", "--interactive", "--network=host", "--log-driver=none", f"--name={name}")
    try:
        yield name, podman("run", *fixed, *_LIMITS, *options, image)
    finally:
        subprocess.run(
            podman("rm", "--force", "--time=0", "--ignore", name),
            capture_output=True,
            text=True,
            check=False,
        )


def unpacked_bytes(image: str) -> int:
    """Return how much of a disk *image* takes when it is unpacked, in whole blocks."""
    folder = _said(podman("image", "mount", image))
    try:
        return int(_said(["du", "--summarize", "--block-size=1", folder]).split()[0])
    finally:
        _said(podman("image", "umount", image))


def _said(command: list[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def let_go() -> None:
    """Let the folder be removed, which podman keeps mounted onto itself; no container may run."""
    subprocess.run(["umount", "--lazy", str(_FOLDER / _SHARING)], capture_output=True, check=False)


def _require_tools() -> None:
    absent = [tool for tool in _TOOLS if shutil.which(tool) is None]
    if not absent:
        return
    reason = f"{' and '.join(absent)} missing: deploy/setup/install.sh containers"
    if os.environ.get("CI") == "true":
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


def _sources() -> Iterator[str]:
    """Yield what the image is made from: what .dockerignore lets through, and itself."""
    ignored = (ROOT / ".dockerignore").read_text()
    yield ignored
    yield (ROOT / "Dockerfile").read_text()
    tops = re.findall(r"^!(\S+)$", ignored, re.MULTILINE)
    for top in sorted(set(tops) - {"deploy"}):
        path = ROOT / top
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.is_file() and file.suffix not in (".pyc", ".so"):
                yield f"{file.relative_to(ROOT)} {hashlib.sha256(file.read_bytes()).hexdigest()}"


def _digest(parts: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _is_current(image: str, digest: str) -> bool:
    return _label(image) == digest


def _label(image: str) -> str:
    form = f'--format={{{{index .Labels "{_LABEL}"}}}}'
    asked = subprocess.run(
        podman("image", "inspect", form, image), capture_output=True, text=True, check=False
    )
    return str(asked.stdout).strip()


def _make_base(name: str, suite: str, digest: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        tar = Path(folder, "base.tar")
        made = subprocess.run(
            ["mmdebstrap", *_BASE_OPTIONS, suite, str(tar)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert 0 == made.returncode, made.stderr
        builder = _buildah("from", "scratch").strip()
        _buildah("add", builder, str(tar), "/")
    path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    _buildah("config", f"--env=PATH={path}", f"--label={_LABEL}={digest}", builder)
    _buildah("commit", "--rm", "--format=docker", builder, name)


def _build(base: str, *options: str) -> None:
    fixed = ("--isolation=chroot", "--pull-never", "--network=host", "--format=docker")
    # Where layers are copied, each step that is kept is a copy of everything.
    layers = f"--layers={'true' if _driver() == _SHARING else 'false'}"
    # Where the host has a certificate authority of its own, pip has to know it.
    volume = f"--volume={_CERTIFICATES}:{_CERTIFICATES}:ro"
    _buildah("bud", *fixed, f"--build-arg=BASE={base}", layers, volume, *options, str(ROOT))


def _buildah(*arguments: str) -> str:
    done = subprocess.run(
        ["buildah", *_storage(), *arguments], capture_output=True, text=True, check=False
    )
    assert 0 == done.returncode, done.stderr[-4000:]
    return str(done.stdout)


def _storage() -> tuple[str, ...]:
    return (
        f"--root={_FOLDER}",
        f"--runroot={_runtime() / 'run'}",
        f"--storage-driver={_driver()}",
    )


@cache
def _driver() -> str:
    """Return the driver that shares layers where it can be had, else the one that copies them."""
    _FOLDER.mkdir(parents=True, exist_ok=True)
    kind = subprocess.run(
        ["stat", "-f", "-c%T", str(_FOLDER)], capture_output=True, text=True, check=False
    ).stdout.strip()
    known = Path("/proc/filesystems").read_text().split()
    return _SHARING if "overlay" in known and kind != "overlayfs" else "vfs"


def _runtime() -> Path:
    # What must not outlive the machine's uptime, apart from that of other checkouts.
    return Path("/run", f"gilscope-tests-{_digest([str(ROOT)])[:12]}")


if __name__ == "__main__":
    # Apart from the tests, which are ended where they take minutes.
    for with_bcc in (False, True):
        built_image(with_bcc=with_bcc)
    let_go()
