"""Kernels of Debian's suites: downloaded with signatures checked, unpacked, never installed."""

import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from support.interpreters.apt import dependencies, unpack
from support.interpreters.interpreter import Unavailable
from support.paths import ROOT

__all__ = ["CACHE", "KERNELS", "Kernel", "fetched", "image_packages"]

CACHE = ROOT / ".cache" / "kernels"
_META = "linux-image-cloud-amd64"
"""The build for virtual machines: the same source and options, with fewer drivers."""
_IMAGE = re.compile(r"linux-image-\d.*-cloud-amd64")


@dataclass(frozen=True, slots=True)
class Kernel:
    """A row of the table: what a suite has as its newest kernel."""

    suite: str
    series: str
    """What is looked for there; ``newest`` for whatever it is."""


KERNELS = (
    Kernel("bullseye", "5.10"),
    Kernel("bookworm", "6.1"),
    Kernel("trixie", "6.12"),
    Kernel("trixie-backports", "newest"),
)
"""Those with long-term support that the distribution has, and the newest that it has."""


def image_packages(of_meta: list[str], of_image: list[str]) -> tuple[str, ...]:
    """Return the packages that hold the kernel, by what the meta package and the image depend on.

    The newest suites have the kernel itself in a package of its own, ``linux-binary-...``.
    """
    (image,) = (name for name in of_meta if _IMAGE.fullmatch(name))
    binary = image.replace("linux-image-", "linux-binary-")
    return (image, binary) if binary in of_image else (image,)


def fetched(kernel: Kernel) -> tuple[str, Path]:
    """Return the release of the suite's newest kernel, and its file.

    Downloads what is not there yet. Raises Unavailable where that is impossible.
    """
    of_meta = dependencies(CACHE, kernel.suite, _META)
    images = [name for name in of_meta if _IMAGE.fullmatch(name)]
    if len(images) != 1:
        raise Unavailable(f"{kernel.suite}: {_META} depends on {images}, not on one image")
    release = images[0].removeprefix("linux-image-")
    folder = CACHE / "images" / kernel.suite
    if not (found := list(folder.rglob(f"vmlinuz*{release}"))):
        of_image = dependencies(CACHE, kernel.suite, images[0])
        unpack(CACHE, kernel.suite, image_packages(of_meta, of_image), folder)
        found = list(folder.rglob("vmlinuz*"))
        shutil.rmtree(folder / "lib", ignore_errors=True)
    if not found:
        raise Unavailable(f"{images[0]} has no kernel")
    if kernel.series not in ("newest", ".".join(release.split(".")[:2])):
        raise Unavailable(f"{kernel.suite} has {release}, which is not {kernel.series}")
    return release, found[0]
