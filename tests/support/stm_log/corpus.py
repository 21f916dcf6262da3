"""Finds the real STM logs that are kept outside of this checkout, with what is known of them."""

import json
import lzma
import os
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from support.paths import ROOT

__all__ = ["CORPUS", "content_of", "needs_corpus", "truth"]

_VARIABLE = "GILSCOPE_STM_LOGS"
_DEFAULT = ROOT.parent / "shared" / "stm-logs"

CORPUS = Path(os.environ.get(_VARIABLE, _DEFAULT))
"""Their folder, which may be missing."""

needs_corpus = pytest.mark.skipif(
    not (CORPUS / "truth.json").exists(),
    reason=f"the real STM logs are not here ({_VARIABLE} names their folder)",
)


@cache
def truth() -> dict[str, dict[str, Any]]:
    """Return what is known of each log, by its name; nothing where they are missing."""
    file = CORPUS / "truth.json"
    return json.loads(file.read_text()) if file.exists() else {}


def content_of(name: str) -> bytes:
    """Return the bytes of the log *name*, unpacked."""
    content = (CORPUS / name).read_bytes()
    return lzma.decompress(content) if name.endswith(".xz") else content
