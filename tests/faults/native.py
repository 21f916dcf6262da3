"""Programs in C that faults need, compiled where they are played."""

import subprocess
from pathlib import Path

from faults.registry import NotHere
from support.interpreters.known import Interpreter, Unavailable, find_interpreter

__all__ = ["compiled", "found", "python_flags"]

_PROGRAMS = Path(__file__).with_name("programs")


def found(name: str) -> Interpreter:
    """Return the interpreter *name*; raises NotHere where this machine has none."""
    try:
        return find_interpreter(name)
    except Unavailable as reason:
        raise NotHere(f"{name}: {reason}") from reason


def python_flags(interpreter: Interpreter, *, linked: bool) -> list[str]:
    """Return what has a program use the headers, and where *linked* the library, of a Python."""
    folder = interpreter.elf.parent
    version = "{}.{}".format(*interpreter.minor)
    (headers,) = (folder.parent / "include").glob(f"python{version}*")
    flags = [f"-I{headers}"]
    if linked:
        flags += [f"-L{folder}", f"-Wl,-rpath,{folder}", f"-lpython{version}"]
    return flags


def compiled(source: str, program: Path, *flags: str) -> Path:
    """Compile *source*, a file in tests/faults/programs, into *program*, and return that."""
    line = ["cc", "-O1", "-w", "-o", str(program), str(_PROGRAMS / source), *flags]
    try:
        subprocess.run(line, check=True, capture_output=True, text=True)
    except FileNotFoundError as error:
        raise NotHere("there is no C compiler") from error
    return program
