"""Looks for what compiles the probes: kernel headers, and a Python that has BCC."""

import json
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from gilscope.bpf.compile.headers import find_headers, find_system_headers
from gilscope.doctor import remedies
from gilscope.errors import KernelOrBccMissing
from gilscope.model.diagnosis import Check, Status
from gilscope.values import dataclass

__all__ = ["BccImport", "ask_pythons", "judge_bcc", "judge_compiler", "judge_headers"]

# Those that bpf/loader.py tries, in its order.
_PYTHONS = (sys.executable, "/usr/bin/python3")
_TIMEOUT_S = 60

_OLDEST_BCC = (0, 16)
"""BPF_RINGBUF_OUTPUT."""
_OLDEST_BCC_WITH_LINKS = (0, 25)
"""Programs are loaded with the type of their attachment."""
_VERSION = re.compile(r"(\d+)\.(\d+)")

_NEEDED_OF_A_NAMED_TREE = ("include/linux/kconfig.h", "include/generated/autoconf.h")

_IMPORT_BCC = """\
import json
try:
    import bcc
except ImportError as error:
    answer = {"absent": str(error)}
except Exception as error:
    answer = {"broken": "%s: %s" % (type(error).__name__, error)}
else:
    real = hasattr(bcc, "BPF")
    answer = {"version": bcc.__version__} if real else {"other": str(bcc.__file__)}
print(json.dumps(answer))
"""


@dataclass(frozen=True, slots=True)
class BccImport:
    """What became of ``import bcc`` in one Python."""

    python: str
    version: str = ""
    """Of BCC, the BPF compiler; empty: this Python cannot use it."""
    other: str = ""
    """The file of a module that is called bcc and is something else."""
    absent: str = ""
    """The message of the ImportError."""
    broken: str = ""
    """BCC is there and cannot be used: the message."""


def judge_compiler(
    environ: Mapping[str, str],
    release: str,
    distributions: Sequence[str],
    *,
    uses_links: bool,
    is_needed: bool,
) -> tuple[Check, Check]:
    """Return what there is to compile the probes; not *is_needed*: they came compiled."""
    if not is_needed:
        found = "not needed: the probes came compiled with gilscope"
        return Check("kernel_headers", Status.OK, found), Check("bcc", Status.OK, found)
    return (
        judge_headers(environ, release, distributions),
        judge_bcc(ask_pythons(), distributions, uses_links=uses_links),
    )


def judge_headers(
    environ: Mapping[str, str],
    release: str,
    distributions: Sequence[str],
    *,
    root: Path = Path("/"),
    shipped: tuple[Path, ...] | None = None,
) -> Check:
    """Return which kernel headers BCC will compile against."""
    name = "kernel_headers"
    remedy = remedies.install_headers(distributions)
    if named := environ.get("BCC_KERNEL_SOURCE"):
        for file in _NEEDED_OF_A_NAMED_TREE:
            if not (Path(named) / file).exists():
                found = f"BCC_KERNEL_SOURCE names {named}, which has no {file}"
                remedy = f"unset BCC_KERNEL_SOURCE, or let it name a whole tree; or: {remedy}"
                return Check(name, Status.MISSING, found, remedy, KernelOrBccMissing.exit_code)
        return Check(name, Status.OK, f"{named} (named by BCC_KERNEL_SOURCE)")
    if shipped is None:
        tree = find_headers(environ, release, root=root)
    else:
        tree = find_headers(environ, release, root=root, shipped=shipped)
    tree = tree or find_system_headers(release, root=root)
    if tree is not None:
        return Check(name, Status.OK, str(tree))
    return Check(
        name,
        Status.MISSING,
        f"none in /lib/modules/{release}/build, /sys/kernel/kheaders.tar.xz or /usr/src",
        remedy,
        KernelOrBccMissing.exit_code,
    )


def ask_pythons() -> tuple[BccImport, ...]:
    """Return what ``import bcc`` does in every Python that may run the compiler."""
    pythons = [python for python in dict.fromkeys(_PYTHONS) if python and Path(python).exists()]
    return tuple(_ask(python) for python in pythons)


def _ask(python: str) -> BccImport:
    try:
        done = subprocess.run(
            # -I, as when it is used: nothing of PYTHONPATH may pose as BCC.
            [python, "-I", "-c", _IMPORT_BCC],
            capture_output=True,
            encoding="utf-8",
            errors="backslashreplace",
            timeout=_TIMEOUT_S,
            check=False,
        )
        return BccImport(python, **json.loads(done.stdout))
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        return BccImport(python, broken=f"it did not answer ({error})")


def judge_bcc(
    imports: Sequence[BccImport], distributions: Sequence[str], *, uses_links: bool
) -> Check:
    """Return which Python has BCC, and whether that is new enough; *uses_links*: for links."""
    name, install = "bcc", remedies.install_bcc(distributions)
    others = [answer for answer in imports if answer.other]
    aside = "".join(
        f"; the module bcc of {answer.python} is not BCC, and is passed over" for answer in others
    )
    for answer in imports:
        if answer.version:
            found = f"{answer.version}, in {answer.python}{aside}"
            return _judge_bcc_version(answer.version, found, uses_links=uses_links)
        if answer.broken:
            found = f"{answer.python} has BCC but cannot use it ({answer.broken})"
            return Check(name, Status.MISSING, found, install, KernelOrBccMissing.exit_code)
    if others:
        found = (
            f"the module bcc of {others[0].python} ({others[0].other}) is not BCC, the BPF "
            "compiler, but another package of that name"
        )
        remedy = f"{others[0].python} -m pip uninstall bcc; {install}"
        return Check(name, Status.MISSING, found, remedy, KernelOrBccMissing.exit_code)
    found = f"no BCC in {' or '.join(answer.python for answer in imports) or 'any Python'}"
    return Check(name, Status.MISSING, found, install, KernelOrBccMissing.exit_code)


def _judge_bcc_version(version: str, found: str, *, uses_links: bool) -> Check:
    numbers = _VERSION.match(version)
    oldest, why = _OLDEST_BCC, "for BPF ring buffers"
    if uses_links:
        oldest, why = _OLDEST_BCC_WITH_LINKS, "for uprobes as links"
    if numbers is None or (int(numbers[1]), int(numbers[2])) >= oldest:
        # A version that is no number was built by somebody, who will know.
        return Check("bcc", Status.OK, found)
    needed = ".".join(map(str, oldest))
    return Check(
        "bcc",
        Status.MISSING,
        f"{found}; {needed} is needed ({why})",
        f"Install BCC {needed} or newer: from a newer release of the distribution, or built from "
        "https://github.com/iovisor/bcc",
        KernelOrBccMissing.exit_code,
    )
