"""Finds the GIL code of one file in a process of its own, which may not use more than it is given.

Started by `search`. The file is anybody's: whatever it makes the search do, the agent
continues.
"""

import os
import resource

__all__ = ["main"]

_MEMORY_BYTES = 1 << 30
_CPU_S = 20


def main(descriptor: int, most_bytes: int, resolver: str) -> str:
    """Return the answer of `search` for the file open as *descriptor*, by module *resolver*."""
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (_CPU_S, _CPU_S))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # Nothing of the file has been read before.
    import importlib  # noqa: PLC0415
    import json  # noqa: PLC0415

    from gilscope.elf.image import ElfError, ElfImage  # noqa: PLC0415
    from gilscope.errors import GilCodeNotFound  # noqa: PLC0415
    from gilscope.runtimes.site_codec import to_json  # noqa: PLC0415

    try:
        image = ElfImage(_content(descriptor, most_bytes))
        sites = to_json(importlib.import_module(resolver).resolve_sites(image))
    except (ElfError, GilCodeNotFound) as error:
        return json.dumps({"error": type(error).__name__, "message": str(error)})
    except MemoryError:
        message = f"searching it took more than {_MEMORY_BYTES >> 30} GB of memory"
        return json.dumps({"error": "GilCodeNotFound", "message": message})
    return json.dumps({"build_id": image.build_id, "digest": image.digest, "sites": sites})


def _content(descriptor: int, most_bytes: int) -> bytes:
    """Return the bytes of the file: all that is said of it is said of these, whoever changes it."""
    pieces = []
    offset = 0
    while offset <= most_bytes and (piece := os.pread(descriptor, 16 << 20, offset)):
        pieces.append(piece)
        offset += len(piece)
    return b"".join(pieces)
