"""Programs that look from outside like a Python that cannot be had here, and only wait.

Each exports what tells that Python's version; nothing of it runs.
"""

import subprocess
from pathlib import Path

__all__ = ["cpython_3_5", "cpython_3_16", "named"]

_WAITS = """\
#include <unistd.h>

int main(void)
{
    char line;

    write(1, "1\\n", 2);
    return read(0, &line, 1) < 0;
}
"""
_C_API = "void PyEval_RestoreThread(void *thread) { (void)thread; }\nchar PyCode_Type[400];\n"


def cpython_3_5(folder: Path) -> Path:
    """Return a program in *folder* that looks like CPython 3.5.10."""
    version = 'const char *Py_GetVersion(void) { return "3.5.10"; }\n'
    return _built(folder / "python3.5", _C_API + version)


def cpython_3_16(folder: Path) -> Path:
    """Return one that looks like CPython 3.16.0."""
    version = "const unsigned long Py_Version = 0x031000f0;\nchar _PyRuntime[4096];\n"
    return _built(folder / "python3.16", _C_API + version)


def named(folder: Path, name: str, *libraries: str) -> Path:
    """Return a program of that *name* that exports nothing and maps *libraries* that are empty."""
    made = [_compiled(folder / library, "", "-shared", "-fPIC") for library in libraries]
    program = folder / name
    flags = ("-Wl,--no-as-needed", *map(str, made), f"-Wl,-rpath,{folder}")
    return _compiled(program, _WAITS, *flags)


def _built(program: Path, exported: str) -> Path:
    return _compiled(program, _WAITS + exported, "-rdynamic")


def _compiled(file: Path, source: str, *flags: str) -> Path:
    command = ["gcc", "-x", "c", "-o", str(file), "-", "-x", "none", *flags]
    subprocess.run(command, input=source, text=True, check=True)
    return file
