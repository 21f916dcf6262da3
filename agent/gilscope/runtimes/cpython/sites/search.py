"""Has the GIL code of a file searched for by a child process with limits; see `search_child`."""

import json
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Final

from gilscope.elf.image import ElfError
from gilscope.errors import GilCodeNotFound
from gilscope.process.files.regular_file import MOST_BYTES, HeldFile
from gilscope.runtimes.site_cache import SiteCache
from gilscope.runtimes.site_codec import from_json
from gilscope.runtimes.sites import Sites
from gilscope.values import dataclass

__all__ = ["SearchedFile", "search_sites", "sites_of"]

_WALL_S: Final = 30.0
_LARGEST_ANSWER: Final = 4 << 20
_ROOT: Final = Path(__file__).parents[4]
_START: Final = (
    "import sys; sys.path.insert(0, sys.argv[1]); "
    "from gilscope.runtimes.cpython.sites.search_child import main; "
    "sys.stdout.write(main(int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]))"
)
"""Isolated from the environment, and without looking for installed packages."""
_RESOLVER: Final = "gilscope.runtimes.cpython.sites.resolve"


def sites_of(file: HeldFile, cache: SiteCache, *, resolver: str = _RESOLVER) -> Sites:
    """Return the GIL code of *file*, which is searched for where nobody knows it yet.

    That is who holds the file already, then *cache*. Raises what `search_sites` raises.
    """

    def found() -> Sites:
        sites = cache.load(file.image())
        if sites is None:
            searched = search_sites(file, resolver=resolver)
            sites = searched.sites
            cache.store(searched, sites)
        return sites

    return file.facts.known(resolver, found)


@dataclass(frozen=True, slots=True)
class SearchedFile:
    """What was found in a file, and in which file: its bytes may have changed since."""

    build_id: str
    digest: str
    """The SHA-256 of the bytes that were searched."""
    sites: Sites


def search_sites(
    file: HeldFile, *, wall_s: float = _WALL_S, resolver: str = _RESOLVER
) -> SearchedFile:
    """Return the GIL code of *file*, searched for *wall_s* at the most.

    *resolver* is the module whose `resolve_sites` knows what it looks like. Raises GilCodeNotFound
    or ElfError.
    """
    try:
        answer = json.loads(_answer(file, wall_s, resolver))
        if "error" in answer:
            kind = ElfError if answer["error"] == "ElfError" else GilCodeNotFound
            raise kind(str(answer["message"]))
        sites = from_json(answer["sites"])
        return SearchedFile(str(answer["build_id"]), str(answer["digest"]), sites)
    except (OSError, RuntimeError) as error:
        raise GilCodeNotFound(f"the search for its GIL code could not be started ({error})") from (
            error
        )
    except (ElfError, GilCodeNotFound):
        raise
    except (ValueError, KeyError, TypeError) as error:
        raise GilCodeNotFound(f"the search for its GIL code gave no answer ({error})") from error


def _answer(file: HeldFile, wall_s: float, resolver: str) -> bytes:
    descriptor = file.fileno()
    command = [sys.executable, "-I", "-S", "-c", _START]
    late = threading.Event()
    with subprocess.Popen(
        [*command, str(_ROOT), str(descriptor), str(MOST_BYTES), resolver],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        pass_fds=[descriptor],
        # Ctrl-C is for gilscope, which ends it.
        start_new_session=True,
    ) as child:

        def end() -> None:
            late.set()
            child.kill()

        deadline = threading.Timer(wall_s, end)
        deadline.daemon = True
        try:
            deadline.start()
            answer = b"" if child.stdout is None else child.stdout.read(_LARGEST_ANSWER + 1)
        except BaseException:
            child.kill()
            raise
        finally:
            deadline.cancel()
        if len(answer) > _LARGEST_ANSWER:
            child.kill()
    _refuse_failure(child.returncode, len(answer), is_late=late.is_set(), wall_s=wall_s)
    return answer


def _refuse_failure(status: int, size: int, *, is_late: bool, wall_s: float) -> None:
    if is_late:
        raise GilCodeNotFound(f"reading the interpreter's file took more than {wall_s:g} s")
    if size > _LARGEST_ANSWER:
        raise GilCodeNotFound("the interpreter's file has more GIL code than any has")
    if status in (-signal.SIGXCPU, -signal.SIGKILL):
        raise GilCodeNotFound("reading the interpreter's file took more than 20 s of CPU")
    if status:
        raise GilCodeNotFound(f"the search for its GIL code ended with status {status}")
