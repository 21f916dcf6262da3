"""Says whose time series the figures of a process are: its own, or those of its service."""

from collections.abc import Callable

from gilscope.model.observation import AnyProcess

__all__ = ["Owner", "OwnerOf", "process_itself", "service_of"]

Owner = tuple[str, str, str, str]
"""The values of PROCESS_LABELS: its name, its number, its container and its pod."""

OwnerOf = Callable[[AnyProcess], Owner]


def process_itself(process: AnyProcess) -> Owner:
    """Return *process* as the owner of its series."""
    return process.name, str(process.pid), process.container_id or "", process.pod_uid or ""


def service_of(process: AnyProcess) -> Owner:
    """Return what *process* is one of: all of the same name in the same container and pod."""
    return process.name, "", process.container_id or "", process.pod_uid or ""
