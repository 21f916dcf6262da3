"""A container as a machine that somebody installs gilscope on, with a program to trace on it."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from support.commands.doctor import running
from support.containers.images import SIDECAR, container, podman
from support.paths import ROOT, WORKLOADS

__all__ = ["Machine", "compiled_folder", "machine"]

_CERTIFICATES = "/etc/ssl/certs"
_AUTHORITIES = f"{_CERTIFICATES}/ca-certificates.crt"
_RIGHTS = tuple(option for option in SIDECAR if option.startswith(("--cap-add", "--security")))
_READY = "echo ready; exec cat"


@dataclass(frozen=True, slots=True)
class Machine:
    """A container that runs, with the distributions of this checkout in ``/dist``."""

    name: str

    def words(self, *options: str) -> list[str]:
        """Return the words in front of what is to run in it."""
        return podman("exec", "--interactive", *options, self.name)

    def run(self, script: str) -> str:
        """Run a shell script in it, and return what it says; fails unless it ends well."""
        done = subprocess.run(
            [*self.words(), "sh", "-ec", script],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert 0 == done.returncode, f"{script}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
        return done.stdout


def compiled_folder() -> str:
    """Return the folder in which the C part of the workloads is; containers have no compiler."""
    script = "import gilclock; print(gilclock.build())"
    line = [sys.executable, "-c", script]
    done = subprocess.run(line, cwd=WORKLOADS, capture_output=True, text=True, check=True)
    return str(Path(done.stdout.strip()).parent)


@contextmanager
def machine(image: str) -> Iterator[Machine]:
    """Run a container of *image* with root's rights in it, and those that tracing takes."""
    volumes = [f"--volume={path}:{path}:ro" for path in (str(WORKLOADS), _CERTIFICATES)]
    compiled = compiled_folder()
    volumes.append(f"--volume={compiled}:{compiled}")
    volumes.append(f"--volume={ROOT / 'dist'}:/dist:ro")
    # Where the host has a certificate authority of its own, installers have to know it.
    trust = [f"--env={name}={_AUTHORITIES}" for name in ("PIP_CERT", "SSL_CERT_FILE")]
    # The workload asks for real-time priority.
    rights = (*_RIGHTS, "--cap-add=SYS_NICE")
    with (
        container(image, *volumes, *trust, *rights) as (name, words),
        running([*words, "sh", "-c", _READY]),
    ):
        yield Machine(name)
