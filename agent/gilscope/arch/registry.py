"""The processors that gilscope knows, of which few runs need more than one."""

from collections.abc import Callable
from functools import cache

from gilscope.arch.base import Architecture

__all__ = ["all_architectures", "architecture_named", "architecture_of_elf"]


@cache
def _x86_64() -> Architecture:
    from gilscope.arch.x86_64.architecture import X86_64  # noqa: PLC0415 - see above

    return X86_64


@cache
def _aarch64() -> Architecture:
    from gilscope.arch.aarch64.architecture import AARCH64  # noqa: PLC0415 - see above

    return AARCH64


_BY_NAME: dict[str, Callable[[], Architecture]] = {"x86_64": _x86_64, "aarch64": _aarch64}
_BY_ELF_MACHINE: dict[int, Callable[[], Architecture]] = {62: _x86_64, 183: _aarch64}


def all_architectures() -> tuple[Architecture, ...]:
    """Return all of them."""
    return tuple(architecture() for architecture in _BY_NAME.values())


def architecture_named(name: str) -> Architecture | None:
    """Return the processor that ``uname -m`` calls *name*, None where it is not known."""
    architecture = _BY_NAME.get(name)
    return None if architecture is None else architecture()


def architecture_of_elf(machine: int) -> Architecture | None:
    """Return the processor with this number in ELF files, None where it is not known."""
    architecture = _BY_ELF_MACHINE.get(machine)
    return None if architecture is None else architecture()
