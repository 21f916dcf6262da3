"""Finds the kernel headers that BCC compiles probes against; any version of them will do."""

import re
from collections.abc import Mapping
from pathlib import Path

__all__ = ["find_headers", "find_system_headers"]

_PACKAGE = Path(__file__).resolve().parents[2]
# In an image or a wheel with headers, inside the package; in a checkout, where set-up puts them.
_SHIPPED = (_PACKAGE / "headers", _PACKAGE.parents[1] / ".cache" / "headers")
# The first file that BCC includes, and one that only a configured tree has.
_NEEDED = ("include/linux/kconfig.h", "include/generated/autoconf.h")
_NUMBER = re.compile(r"\d+")


def find_headers(
    environ: Mapping[str, str],
    release: str,
    *,
    shipped: tuple[Path, ...] = _SHIPPED,
    root: Path = Path("/"),
) -> Path | None:
    """Return the tree that ``BCC_KERNEL_SOURCE`` has to name for BCC to compile.

    None means that BCC is to be left alone: it finds headers of *release* (that of ``uname -r``)
    by itself, or there are none; `find_system_headers` tells the two apart. A tree that the user
    names in *environ* is returned without checking it, so that BCC's complaint is about that tree.
    """
    if named := environ.get("BCC_KERNEL_SOURCE"):
        return Path(named)
    for tree in shipped:
        if _is_complete(tree):
            return tree
    if find_system_headers(release, root=root) is not None:
        return None
    sources = [tree for tree in (root / "usr/src").glob("linux-headers-*") if _is_complete(tree)]
    return max(sources, key=_by_version, default=None)


def find_system_headers(release: str, *, root: Path = Path("/")) -> Path | None:
    """Return what BCC finds without being told: the modules' build tree, or the kernel's archive.

    The build tree need not be complete, because distributions that split their headers link the
    other part beside it and BCC follows that link.
    """
    build = root / "lib/modules" / release / "build"
    if build.is_dir():
        return build
    archive = root / "sys/kernel/kheaders.tar.xz"
    return archive if archive.exists() else None


def _is_complete(tree: Path) -> bool:
    return all((tree / file).exists() for file in _NEEDED)


def _by_version(tree: Path) -> list[int]:
    return [int(number) for number in _NUMBER.findall(tree.name)]
