"""Finds the files that ship beside the code: the probes and the dashboards."""

from pathlib import Path

__all__ = ["asset"]

_PACKAGE = Path(__file__).resolve().parents[1]
# Installed, the files are inside the package; in a checkout, at the top of the tree.
_ROOTS = (_PACKAGE, _PACKAGE.parents[1])


def asset(name: str, roots: tuple[Path, ...] = _ROOTS) -> Path:
    """Return the path of *name*, such as ``"probes"`` or ``"dashboards/grafana"``.

    Raises FileNotFoundError when neither the installation nor the checkout has it.
    """
    for root in roots:
        if (path := root / name).exists():
            return path
    message = f"{name} ships with gilscope but is not below any of: " + ", ".join(map(str, roots))
    raise FileNotFoundError(message)
