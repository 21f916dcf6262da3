"""Compiles libraries that deal with a lock as PyPy's does, or not quite so."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

from gilscope.elf.image import ElfImage

__all__ = ["GIVES", "SLOW", "Library", "compiled"]

SLOW = """
__attribute__((noipa)) static void slow(void)
{
    struct timespec until = {0, 100000};
    __sync_fetch_and_add(&waiting, 1);
    pthread_mutex_lock(&stealer);
    pthread_mutex_lock(&mutex);
    while (!__sync_bool_compare_and_swap(&lock, 0, (long)pthread_self()))
        pthread_cond_timedwait(&cond, &mutex, &until);
    __sync_fetch_and_sub(&waiting, 1);
    pthread_mutex_unlock(&mutex);
    pthread_mutex_unlock(&stealer);
}
"""
GIVES = """
__attribute__((noipa)) static long gives(void)
{
    if (waiting == 0)
        return 0;
    pthread_mutex_lock(&mutex);
    lock = 0;
    pthread_mutex_unlock(&mutex);
    pthread_cond_signal(&cond);
    slow();
    return 1;
}
"""
_HEAD = """
#include <pthread.h>
#include <time.h>
static long volatile lock, waiting, other;
static pthread_mutex_t mutex, stealer;
static pthread_cond_t cond;
"""
_TAIL = """
void begins(void) { if (!__sync_bool_compare_and_swap(&lock, 0, 1)) slow(); other++; }
long ticks(void) { return gives(); }
"""


class Library(NamedTuple):
    """One that was compiled, stripped, and where its names were."""

    image: ElfImage
    symbols: dict[str, int]


def compiled(
    folder: Path,
    source: str = SLOW + GIVES,
    more: str = "",
    option: str = "-fcf-protection=none",
) -> Library:
    """Return a library of *source*, and of *more* behind it."""
    for tool in ("gcc", "nm", "strip"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed (apt install gcc binutils)")
    (folder / "made.c").write_text(_HEAD + source + _TAIL + more)
    library = folder / "made.so"
    options = ["-O2", "-shared", "-fPIC", option]
    subprocess.run(["gcc", *options, "-o", str(library), str(folder / "made.c")], check=True)
    listing = subprocess.run(["nm", str(library)], check=True, capture_output=True, text=True)
    found = re.findall(r"^([0-9a-f]+) \w (\S+)$", listing.stdout, re.MULTILINE)
    subprocess.run(["strip", str(library)], check=True)
    return Library(ElfImage(library.read_bytes()), {name: int(at, 16) for at, name in found})
