"""Tests of the search for headers and BCC."""

import sys
from pathlib import Path

import pytest

from gilscope.bpf import loader
from gilscope.doctor import compiler
from gilscope.doctor.compiler import (
    BccImport,
    ask_pythons,
    judge_bcc,
    judge_compiler,
    judge_headers,
)
from gilscope.model.diagnosis import Status

_RELEASE = "6.18.1-test"


def _tree(folder: Path, *files: str) -> Path:
    for file in files:
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).touch()
    return folder


_WHOLE = ("include/linux/kconfig.h", "include/generated/autoconf.h")


def test_no_headers_anywhere(tmp_path: Path) -> None:
    """
    The places that were searched are named, and the distribution's command.
    """
    check = judge_headers({}, _RELEASE, ("debian",), root=tmp_path, shipped=())

    assert (
        Status.MISSING,
        "none in /lib/modules/6.18.1-test/build, /sys/kernel/kheaders.tar.xz or /usr/src",
        (
            "apt install linux-headers-$(uname -r), or name one complete tree of any version in "
            "BCC_KERNEL_SOURCE"
        ),
        6,
    ) == (check.status, check.found, check.remedy, check.exit_code)


@pytest.mark.parametrize(
    ("distributions", "command"),
    [
        (("ubuntu", "debian"), "apt install linux-headers-$(uname -r), "),
        (("fedora",), "dnf install kernel-devel, "),
        (("rocky", "rhel", "centos", "fedora"), "dnf install kernel-devel, "),
        (("arch",), "pacman -S linux-headers, "),
        (("unheard-of",), "apt install linux-headers-$(uname -r), "),
    ],
)
def test_headers_by_distribution(
    tmp_path: Path, distributions: tuple[str, ...], command: str
) -> None:
    """
    Each family has its own command; Debian's stands for the rest.
    """
    check = judge_headers({}, _RELEASE, distributions, root=tmp_path, shipped=())

    assert check.remedy.startswith(command)


@pytest.mark.parametrize("complete", [False, True])
def test_headers_that_the_user_names(tmp_path: Path, *, complete: bool) -> None:
    """
    The tree is looked at; the first file that it lacks is named.
    """
    tree = _tree(tmp_path / "tree", *_WHOLE[: 2 if complete else 1])

    check = judge_headers({"BCC_KERNEL_SOURCE": str(tree)}, _RELEASE, (), root=tmp_path)

    assert (
        (Status.OK, f"{tree} (named by BCC_KERNEL_SOURCE)")
        if complete
        else (
            Status.MISSING,
            f"BCC_KERNEL_SOURCE names {tree}, which has no include/generated/autoconf.h",
        )
    ) == (check.status, check.found)


def test_headers_of_the_running_kernel(tmp_path: Path) -> None:
    """
    What BCC finds by itself is named too.
    """
    build = _tree(tmp_path / "lib/modules" / _RELEASE / "build", *_WHOLE)

    check = judge_headers({}, _RELEASE, (), root=tmp_path, shipped=())

    assert (Status.OK, str(build)) == (check.status, check.found)


def test_shipped_headers(tmp_path: Path) -> None:
    """
    A tree that came with gilscope will do.
    """
    tree = _tree(tmp_path / "shipped", *_WHOLE)

    check = judge_headers({}, _RELEASE, (), root=tmp_path, shipped=(tree,))

    assert (Status.OK, str(tree)) == (check.status, check.found)


def test_the_first_python_that_has_bcc() -> None:
    """
    A Python without BCC is passed over.
    """
    check = judge_bcc(
        (BccImport("/a", absent="no"), BccImport("/b", version="0.26.0")), (), uses_links=True
    )

    assert (Status.OK, "0.26.0, in /b") == (check.status, check.found)


def test_another_package_of_that_name_is_passed_over() -> None:
    """
    It is mentioned, and does no harm where another Python has BCC.
    """
    check = judge_bcc(
        (BccImport("/a", other="/a/bcc.py"), BccImport("/b", version="0.26.0")), (), uses_links=True
    )

    assert (Status.OK, "0.26.0, in /b; the module bcc of /a is not BCC, and is passed over") == (
        check.status,
        check.found,
    )


def test_only_another_package_of_that_name() -> None:
    """
    The remedy removes it and installs BCC.
    """
    check = judge_bcc(
        (BccImport("/a", other="/a/bcc.py"), BccImport("/b", absent="no")),
        ("fedora",),
        uses_links=True,
    )

    assert (
        Status.MISSING,
        (
            "the module bcc of /a (/a/bcc.py) is not BCC, the BPF compiler, but another package of "
            "that name"
        ),
        "/a -m pip uninstall bcc; dnf install python3-bcc",
        6,
    ) == (check.status, check.found, check.remedy, check.exit_code)


def test_bcc_that_cannot_be_used() -> None:
    """
    A BCC whose library is missing stops the search, as it does when the probes are compiled.
    """
    broken = BccImport("/a", broken="OSError: libbcc.so.0: cannot open shared object file")

    check = judge_bcc((broken, BccImport("/b", version="0.26.0")), ("debian",), uses_links=True)

    assert (Status.MISSING, "apt install python3-bpfcc") == (check.status, check.remedy)


def test_no_bcc() -> None:
    """
    All Pythons that were asked are named.
    """
    check = judge_bcc(
        (BccImport("/a", absent="no"), BccImport("/b", absent="no")), ("arch",), uses_links=True
    )

    assert (Status.MISSING, "no BCC in /a or /b", "pacman -S python-bcc") == (
        check.status,
        check.found,
        check.remedy,
    )


@pytest.mark.parametrize(
    ("version", "uses_links", "needed"),
    [
        ("0.25.0", True, ""),
        ("0.24.0", True, "0.25 is needed (for uprobes as links)"),
        ("0.18.0", False, ""),
        ("0.16.0", False, ""),
        ("0.15.0", False, "0.16 is needed (for BPF ring buffers)"),
        ("1.0", True, ""),
        ("EMPTY", True, ""),
    ],
)
def test_the_oldest_bcc(version: str, *, uses_links: bool, needed: str) -> None:
    """
    What a kernel lets the probes be is what BCC must know; a version without a number passes.
    """
    check = judge_bcc((BccImport("/a", version=version),), (), uses_links=uses_links)

    assert (
        (Status.MISSING, f"{version}, in /a; {needed}", 6)
        if needed
        else (Status.OK, f"{version}, in /a", 0)
    ) == (check.status, check.found, check.exit_code)


def test_the_same_pythons_as_the_loader() -> None:
    """
    Doctor asks those that the loader will run, in its order.
    """
    assert vars(loader)["_PYTHONS"] == vars(compiler)["_PYTHONS"]


def test_every_python_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Each is run once; one that is not there is left out, one that fails is told of.
    """
    monkeypatch.setattr(compiler, "_PYTHONS", (sys.executable, sys.executable, "/no", "/bin/false"))

    answers = ask_pythons()

    assert [sys.executable, "/bin/false"] == [answer.python for answer in answers]
    assert answers[1].broken.startswith("it did not answer")


def test_no_compiler_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Where the probes came compiled, nobody looks for headers or asks a Python.
    """
    monkeypatch.setattr(compiler, "ask_pythons", pytest.fail)
    checks = judge_compiler(
        {"BCC_KERNEL_SOURCE": "/nowhere"}, _RELEASE, (), uses_links=True, is_needed=False
    )

    assert ["kernel_headers", "bcc"] == [check.name for check in checks]
    assert {(Status.OK, "not needed: the probes came compiled with gilscope")} == {
        (check.status, check.found) for check in checks
    }
