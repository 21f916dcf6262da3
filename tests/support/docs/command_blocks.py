"""The commands of a page, and a place in which they are run as a reader would run them."""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from support.commands.gilscope import eventually
from support.docs.pages import ROOT, code_blocks

__all__ = ["Place", "Started", "blocks_of", "commands_of", "free_port", "place"]

_PATIENCE_S = 120.0
_HEADERS = ROOT / ".cache" / "headers"
_TOOLS = ROOT / ".cache" / "tools" / "usr" / "bin"
_NOT_COPIED = shutil.ignore_patterns(".*", "*.so", "__pycache__", "build", "dist")


def blocks_of(page: Path) -> list[str]:
    """Return the blocks of *page* that are for a shell."""
    return list(code_blocks(page.read_text(), "sh"))


def commands_of(block: str) -> list[str]:
    """Return the commands in *block*: its lines, or all of it where it has input."""
    return [block] if "<<" in block else block.splitlines()


@dataclass(slots=True)
class Started:
    """A command that runs, or has ended."""

    process: subprocess.Popen[bytes]
    _output: Path

    @property
    def output(self) -> str:
        """What it has written, to standard output or standard error."""
        return self._output.read_text()

    def says(self, pattern: str) -> str:
        """Wait for output in which *pattern* is found, and return what its group is."""

        def found() -> re.Match[str] | None:
            match = re.search(pattern, self.output, re.MULTILINE)
            assert match or self.process.poll() is None, self.output
            return match

        match = eventually(found)
        assert match is not None
        return match[match.lastindex or 0]

    def end(self) -> None:
        """End it and what it has started."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGTERM)
        self.process.wait(_PATIENCE_S)


@dataclass(slots=True)
class Place:
    """A folder, an environment, and what the names on the pages stand for here."""

    folder: Path
    words: dict[str, str]
    """What is replaced in a command, by what: process ids, ports, folders, durations."""
    _outputs: Path
    _environment: Mapping[str, str]
    _stack: ExitStack = field(repr=False)

    def start(self, command: str) -> Started:
        """Start *command* in a shell, which is not the one of the command before."""
        # The Makefile is the checkout's, where everything is installed already.
        folder = ROOT if command.startswith("make ") else self.folder
        for word, real in self.words.items():
            command = command.replace(word, real)
        file = self._outputs / str(len(list(self._outputs.iterdir())))
        with file.open("wb") as output:
            process = subprocess.Popen(
                ["bash", "-o", "pipefail", "-c", command],
                cwd=folder,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        started = Started(process, file)
        self._stack.callback(started.end)
        return started

    def run(self, command: str) -> str:
        """Run *command* to its end, and return what it has written; fails where it fails."""
        started = self.start(command)
        code = started.process.wait(_PATIENCE_S)
        assert 0 == code, f"{command}\n{started.output}"
        return started.output


@contextmanager
def place(folder: Path, below: str = "") -> Iterator[Place]:
    """Make a copy of the checkout, and a place in the folder *below* it; all ends with the block.

    The folders that pages install into are in the copy's neighbourhood.
    """
    checkout = folder / "checkout"
    shutil.copytree(ROOT, checkout, ignore=_NOT_COPIED)
    home, outputs = folder / "home", folder / "outputs"
    home.mkdir()
    outputs.mkdir()
    path = (str(Path(sys.executable).parent), str(_TOOLS), os.environ["PATH"])
    environment = {
        **os.environ,
        "HOME": str(home),
        "PATH": os.pathsep.join(path),
        # Which takes as long as the rest of an installation.
        "PIP_NO_COMPILE": "1",
    }
    if _HEADERS.exists():
        # An installed gilscope does not find those of a checkout.
        environment.setdefault("BCC_KERNEL_SOURCE", str(_HEADERS))
    with ExitStack() as stack:
        yield Place(checkout / below, {"/opt/": f"{folder}/opt/"}, outputs, environment, stack)


def free_port() -> int:
    """Return a port of the loopback that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])
