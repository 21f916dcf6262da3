"""Where tests remember the sites of the interpreters that they trace."""

import atexit
import tempfile
from functools import cache
from pathlib import Path

from gilscope.runtimes.site_cache import SiteCache

__all__ = ["shared_sites"]


@cache
def shared_sites() -> SiteCache:
    """Return what all tests of this process share: to find sites takes half a second of CPU.

    It begins empty in each run, for the code that finds them may have changed.
    """
    folder = tempfile.TemporaryDirectory(prefix="gilscope-sites-")
    atexit.register(folder.cleanup)
    return SiteCache(Path(folder.name))
