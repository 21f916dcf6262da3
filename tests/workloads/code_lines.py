"""Compiles a corpus and prints its line tables, with the line of each instruction.

Known answer: the interpreter's own `PyCode_Addr2Line`, which also makes the line numbers of
tracebacks; and `co_lines` where the version has it. The corpus is a part of the standard library
and a few sources that are shaped like no source that people write.
"""

import ctypes
import json
import os
import sys
import types

MODULES = ("argparse", "asyncio/base_events", "threading", "typing")
FEWEST_CODES = 400
UNIT = 2

ODD_SOURCES = (
    "",
    "\n" * 40000 + "a = 1\n" + "\n" * 70000 + "b = 2\n",
    "a = 1\n" + "b = 2; " * 200 + "\n" * 130 + "c = 3\n",
    "f(\n" + "\n" * 200 + "a\n" + "\n" * 150 + ", b)(\nc)\n",
    "x = [" + " " * 300 + "y for y in range(3)" + " " * 300 + "\n" * 90 + "if y]\n",
    "def f(a):\n" + "\n" * 127 + " try:\n  return a\n finally:\n" + "\n" * 128 + "  a = None\n",
    "def f(a):\n with a:\n  pass\n for b in a:\n  continue\n else:\n  return\n while 1: pass\n",
    "class A:\n def f(self): return lambda: (yield\n\n)\n @f(\n f)\n\n def g(self): pass\n",
    "async def f(a):\n async with a: pass\n async for b in a:\n  await b\n return [\nawait a]\n",
    "def f(a):\n if a and (\n a or\n not a): raise\n assert a, (\n'no')\n del a\n",
)

addr2line = ctypes.pythonapi.PyCode_Addr2Line
addr2line.argtypes = [ctypes.py_object, ctypes.c_int]


def with_children(code):
    """Yield a code object and all that are nested in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from with_children(constant)


def described(code):
    """Return what the decoder gets, and the line of every instruction, None for no line."""
    table = code.co_linetable if hasattr(code, "co_linetable") else code.co_lnotab
    lines = [addr2line(code, offset) for offset in range(0, len(code.co_code), UNIT)]
    lines = [None if line == -1 else line for line in lines]
    if hasattr(code, "co_lines"):
        other = [None] * len(lines)
        for start, end, line in code.co_lines():
            for offset in range(start, end, UNIT):
                other[offset // UNIT] = line
        assert lines == other, code
    return {
        "name": code.co_name,
        "table": table.hex(),
        "first_line": code.co_firstlineno,
        "lines": lines,
    }


def main():
    """Print one JSON list."""
    library = os.path.dirname(os.__file__)
    sources = list(ODD_SOURCES)
    for module in MODULES:
        with open(os.path.join(library, module + ".py"), encoding="utf-8") as file:
            sources.append(file.read())
    codes = [
        described(code)
        for source in sources
        for code in with_children(compile(source, "<corpus>", "exec"))
    ]
    assert len(codes) > FEWEST_CODES
    json.dump(codes, sys.stdout)


if __name__ == "__main__":
    main()
