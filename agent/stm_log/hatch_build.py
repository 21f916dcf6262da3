"""Compiles the extension module that reads STM logs, for hatchling and for a checkout."""

import sysconfig
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from setuptools import Distribution, Extension
from setuptools.command.build_ext import build_ext

__all__ = ["StmLogBuildHook", "compile_in_place"]

_SOURCES = Path(__file__).resolve().parent
_PACKAGES = _SOURCES.parent
_MODULE = "gilscope.stm._native"
_OLDEST_PYTHON = "0x030b0000"
"""CPython 3.11: the module uses nothing but what is stable from there on."""


class StmLogBuildHook(BuildHookInterface[Any]):
    """Puts the module beside its package, for wheels and for editable installations alike."""

    PLUGIN_NAME = "custom"

    def initialize(self, _version: str, build_data: dict[str, Any]) -> None:
        """Compile, and say that the wheel is for one platform and for every Python from 3.11 on."""
        compiled = compile_in_place()
        build_data["pure_python"] = False
        build_data["tag"] = f"cp311-abi3-{_platform()}"
        build_data["artifacts"].append(f"/{compiled.relative_to(self.root)}")


def compile_in_place() -> Path:
    """Return the path of the module, compiled again; raises setuptools' errors."""
    sources = sorted(str(path.relative_to(_PACKAGES)) for path in _SOURCES.glob("*.c"))
    extension = Extension(
        _MODULE,
        [str(_PACKAGES / source) for source in sources],
        define_macros=[("Py_LIMITED_API", _OLDEST_PYTHON)],
        extra_compile_args=["-std=c11", "-O2", "-Wall", "-Wextra", "-Werror"],
        py_limited_api=True,
    )
    command = build_ext(Distribution({"name": "gilscope", "ext_modules": [extension]}))
    with TemporaryDirectory() as objects:
        command.build_lib = str(_PACKAGES)
        command.build_temp = objects
        # What it makes only depends on files whose times say nothing in an unpacked archive.
        command.force = True
        command.ensure_finalized()
        command.run()
    return _PACKAGES.joinpath(*_MODULE.split(".")).with_suffix(".abi3.so")


def _platform() -> str:
    return sysconfig.get_platform().replace("-", "_").replace(".", "_")


if __name__ == "__main__":
    compile_in_place()
