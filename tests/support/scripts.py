"""Scripts of the repository that are in no package, as modules."""

import importlib.util
from pathlib import Path
from types import ModuleType

__all__ = ["script"]


def script(path: Path) -> ModuleType:
    """Return what the script at *path* defines, without running its main part."""
    spec = importlib.util.spec_from_file_location(f"script_{path.parent.name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
