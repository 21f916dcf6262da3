"""Finds the places at which a trap costs more, because the kernel has to single-step there."""

from collections.abc import Iterable
from collections.abc import Set as AbstractSet

from gilscope.bpf.uprobes.hooks import Hook
from gilscope.process.files.mapped_file import MappedFile
from gilscope.process.memory import ProcessMemory
from gilscope.process.view import ProcessView

__all__ = ["stepped_programs"]

_INSTRUCTION = 4
"""Bytes that tell whether the kernel emulates it, on any processor."""


def stepped_programs(
    hooks: Iterable[Hook], file: MappedFile, view: ProcessView, memory: ProcessMemory
) -> AbstractSet[str]:
    """Return the programs of *hooks* in *file* that are single-stepped, at any of their places."""
    code = [
        mapping
        for mapping in view.mappings
        if mapping.executable and mapping.path == file.mapping.path
    ]
    is_emulated = file.image().architecture.is_emulated
    return {
        hook.program
        for hook in hooks
        if not any(
            is_emulated(memory.read(mapping.start + hook.offset - mapping.offset, _INSTRUCTION))
            for mapping in code
            if 0 <= hook.offset - mapping.offset < mapping.end - mapping.start - _INSTRUCTION
        )
    }
