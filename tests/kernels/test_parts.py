"""What machine is booted, from which packages, with which files."""

from pathlib import Path

import pytest

from kernels.checks import CHECKS
from kernels.machine import command_line
from kernels.packages import image_packages
from kernels.root import closure, names_of, steps_to
from support.paths import ROOT

_OLD = "linux-image-5.10.0-32-cloud-amd64"
_NEW = "linux-image-7.3.4+deb13-cloud-amd64"


@pytest.mark.parametrize(
    ("of_meta", "of_image", "packages"),
    [
        ([_OLD], ["kmod", "linux-base"], (_OLD,)),
        (
            ["linux-base-cloud-amd64", _NEW],
            ["linux-binary-7.3.4+deb13-cloud-amd64", "linux-modules-7.3.4+deb13-cloud-amd64"],
            (_NEW, "linux-binary-7.3.4+deb13-cloud-amd64"),
        ),
    ],
)
def test_packages_of_a_kernel(
    of_meta: list[str], of_image: list[str], packages: tuple[str, ...]
) -> None:
    """
    The image, and what has the kernel itself where that is another one.
    """
    assert packages == image_packages(of_meta, of_image)


def test_names_in_a_field_of_dependencies() -> None:
    """
    Without versions and architectures; of alternatives the first.
    """
    assert ["a", "b", "d"] == names_of("a (>= 1), b:any, , d | e (= 2)")
    assert [] == names_of(", ")


def test_closure() -> None:
    """
    Each once, rings and packages that are not installed included.
    """
    depends = {"a": "b, gone", "b": "c", "c": "a", "other": ""}

    assert ["a", "b", "c"] == closure(["a"], depends)


def test_steps_to_a_file(tmp_path: Path) -> None:
    """
    The links on the way, and what they lead to.
    """
    (tmp_path / "usr" / "lib").mkdir(parents=True)
    (tmp_path / "lib").symlink_to("usr/lib")
    (tmp_path / "usr" / "lib" / "file.1").touch()
    (tmp_path / "usr" / "lib" / "file").symlink_to("file.1")
    steps = list(steps_to(tmp_path / "lib" / "file"))

    names = ["lib", "usr", "usr/lib", "usr/lib/file", "usr/lib/file.1"]
    assert names == [str(step.relative_to(tmp_path)) for step in steps if step > tmp_path]


def test_steps_round_in_a_ring(tmp_path: Path) -> None:
    """
    A link to itself ends.
    """
    (tmp_path / "ring").symlink_to("ring")

    assert tmp_path / "ring" == list(steps_to(tmp_path / "ring"))[-1]


def test_the_machine_is_emulated_and_has_no_network() -> None:
    """
    It switches itself off where its kernel ends, and its second port is the file of results.
    """
    line = " ".join(command_line(Path("/kernel"), Path("/root.cpio"), Path("/results")))

    assert "-accel tcg,thread=multi" in line
    assert "-net none" in line
    assert "-no-reboot" in line
    assert "panic=-1" in line
    assert line.endswith("-serial stdio -serial file:/results")


def test_each_check_is_a_test_that_exists() -> None:
    """
    Its file has a function of that name.
    """
    for check in CHECKS:
        file, _, name = check.test.partition("::")
        assert f"def {name.partition('[')[0]}(" in (ROOT / file).read_text()
