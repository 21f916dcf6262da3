"""Compiles what is written in C, for hatchling and for a checkout."""

import sysconfig
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from setuptools import Distribution, Extension
from setuptools.command.build_ext import build_ext

__all__ = ["ExtensionBuildHook", "compile_in_place"]

_NATIVE = Path(__file__).resolve().parent
_PACKAGES = _NATIVE.parent
_SOURCES = {
    "gilscope.process._remote_memory": ("remote_memory/*.c",),
    "gilscope.gil.tracing._lock_sampler": ("lock_sampler/*.c", "remote_memory/remote.c"),
    "gilscope.stm_log._stm_log": ("stm_log/*.c",),
}
"""What each module is made of, beside this file."""
_KEEPER = _PACKAGES / "gilscope" / "bpf" / "uprobes" / "_keeper"
"""The program that is made of ``keeper``."""
_OLDEST_PYTHON = "0x030b0000"
"""CPython 3.11: the modules use nothing but what is stable from there on."""
_OPTIONS = ("-std=c11", "-O2", "-Wall", "-Wextra")


class ExtensionBuildHook(BuildHookInterface[Any]):
    """Puts all of it into the package, for wheels and for editable installations alike."""

    PLUGIN_NAME = "custom"

    def initialize(self, _version: str, build_data: dict[str, Any]) -> None:
        """Compile, and say that the wheel is for one platform and for every Python from 3.11 on."""
        compiled = compile_in_place()
        build_data["pure_python"] = False
        build_data["tag"] = f"cp311-abi3-{_platform()}"
        build_data["artifacts"] += [f"/{path.relative_to(self.root)}" for path in compiled]


def compile_in_place(*more_options: str) -> list[Path]:
    """Return the paths of modules and program, compiled again; raises setuptools' errors.

    *more_options* are for the compiler.
    """
    options = [*_OPTIONS, *more_options]
    extensions = [_extension(module, options) for module in _SOURCES]
    command = build_ext(Distribution({"name": "gilscope", "ext_modules": extensions}))
    with TemporaryDirectory() as objects:
        command.build_lib = str(_PACKAGES)
        command.build_temp = objects
        # What it makes only depends on files whose times say nothing in an unpacked archive.
        command.force = True
        command.ensure_finalized()
        command.run()
        # The same compiler; a program has no need of what modules are linked with.
        compiled = command.compiler.compile(
            [str(path) for path in sorted((_NATIVE / "keeper").glob("*.c"))],
            output_dir=objects,
            extra_postargs=options,
        )
        command.compiler.link_executable(
            compiled, str(_KEEPER), libraries=["rt"], extra_preargs=["-s"]
        )
    modules = [_PACKAGES.joinpath(*name.split(".")).with_suffix(".abi3.so") for name in _SOURCES]
    return [*modules, _KEEPER]


def _extension(module: str, options: list[str]) -> Extension:
    return Extension(
        module,
        [str(path) for glob in _SOURCES[module] for path in sorted(_NATIVE.glob(glob))],
        include_dirs=[str(_NATIVE)],
        define_macros=[("Py_LIMITED_API", _OLDEST_PYTHON)],
        extra_compile_args=options,
        py_limited_api=True,
    )


def _platform() -> str:
    return sysconfig.get_platform().replace("-", "_").replace(".", "_")


if __name__ == "__main__":
    # In a checkout alone: what compilers of tomorrow warn of must keep nobody from installing.
    compile_in_place("-Werror")
