"""What to tell the user of programs that could not be compiled or loaded."""

import errno
import os
from collections.abc import Mapping
from typing import Any

from gilscope.bpf import syscalls
from gilscope.errors import KernelOrBccMissing, LimitReached, NotPermitted
from gilscope.system.shortage import low_limits

__all__ = ["failure"]


def failure(answer: Mapping[str, Any], complaints: str, refusal: str = "") -> Exception:
    """Return the error that *answer* of ``bcc_child`` stands for; it said *complaints* besides.

    *refusal*: why the kernel did not take programs that were compiled ahead.
    """
    kind, message = answer["error"], answer["message"]
    limits = low_limits()
    if kind in ("no-bcc", "not-bcc"):
        return _absence(answer, limits, refusal)
    detail = complaints.strip()
    # BCC makes the maps while it compiles, and calls it a failure to compile when it may not.
    if _is_refused(answer):
        said = f" ({message})" if kind == "load" else ""
        return NotPermitted(f"the kernel refused gilscope's BPF programs{said}")
    if "kernel headers" in detail or "Unable to find" in detail:
        return KernelOrBccMissing(
            "BCC found no kernel headers to compile against",
            remedy="Install those of this kernel (apt install linux-headers-$(uname -r)), or name "
            "one complete tree of any version in BCC_KERNEL_SOURCE.",
        )
    what = f"BCC could not {'load' if kind == 'load' else 'compile'} the probes: {message}"
    if limits:
        # BCC does not say what it has run out of.
        return LimitReached(f"{what}; limits of this process are low: {limits}")
    return KernelOrBccMissing(what + (f"\n{detail}" if detail else ""))


def _absence(answer: Mapping[str, Any], limits: str, refusal: str) -> Exception:
    message = answer["message"]
    if refusal:
        return KernelOrBccMissing(
            f"the kernel did not take the programs that came with gilscope ({refusal}), and "
            f"no Python here has BCC to compile others ({message})",
            remedy="Install it: apt install python3-bpfcc",
        )
    if answer["error"] == "not-bcc":
        return KernelOrBccMissing(
            f"the Python module 'bcc' in {message} is not BCC, the BPF compiler",
            remedy="Remove that package (pip uninstall bcc) and: apt install python3-bpfcc",
        )
    if answer.get("is_there") and limits:
        return LimitReached(
            f"BCC cannot be loaded: {message}; limits of this process are low: {limits}"
        )
    return KernelOrBccMissing(
        f"no Python here can import BCC ({message})",
        remedy="Install it: apt install python3-bpfcc",
    )


def _is_refused(answer: Mapping[str, Any]) -> bool:
    if answer.get("errno") in (errno.EPERM, errno.EACCES):
        return True
    try:
        os.close(syscalls.create_array_map())
    except OSError as error:
        return error.errno in (errno.EPERM, errno.EACCES)
    return False
