"""Reads the names that compilers of C++ and Rust give functions: `_ZN2at3addERKNS_6TensorE`.

Whoever made the file has made up its names. So nothing of them is expanded: types of arguments
and of templates are passed over and not told, which leaves `at::add`, shorter than what it was
made of. The grammar is that of the Itanium C++ ABI, 5.1; a name that it does not cover, or that has
computed types, is told as it is.
"""

import re
from typing import Final

__all__ = ["demangled"]

_LONGEST: Final = 4096
_DEEPEST: Final = 64
_ANONYMOUS: Final = "_GLOBAL__N"
_RUST_HASH: Final = re.compile(r"h[0-9a-f]{16}")
_MANGLED: Final = re.compile(r"_Z[\w$]+")
_NUMBER: Final = re.compile(r"[1-9]\d{0,3}")
_SEQUENCE: Final = re.compile(r"[0-9A-Z]*_")
_QUALIFIERS: Final = re.compile(r"r?V?K?[RO]?")
_TYPE_PREFIXES: Final = re.compile(r"[rVKPROCG]*(?:Dp[rVKPROCG]*)?")
_BUILTIN: Final = re.compile(r"D[defhisuacn]|[vwbcahstijlmxynofdegz]")
_THUNK: Final = re.compile(r"T(?:hn?\d+_|vn?\d+_n?\d+_)")
_LITERAL: Final = re.compile(r"n?[0-9a-f]*E")
_STANDARD: Final = {
    "a": "std::allocator",
    "b": "std::basic_string",
    "s": "std::basic_string",
    "i": "std::basic_istream",
    "o": "std::basic_ostream",
    "d": "std::basic_iostream",
}
_SIGNS: Final = """
    ps+ ng- ad& de* co~ pl+ mi- ml* dv/ rm% an& or| eo^ aS= pL+= mI-= mL*= dV/= rM%= aN&= oR|= eO^=
    ls<< rs>> lS<<= rS>>= eq== ne!= lt< gt> le<= ge>= ss<=> nt! aa&& oo|| pp++ mm-- cm, pm->* pt->
    cl() ix[]"""
_OPERATORS: Final = {each[:2]: each[2:] for each in _SIGNS.split()} | {
    "nw": " new",
    "na": " new[]",
    "dl": " delete",
    "da": " delete[]",
    "aw": " co_await",
}


class _NotCoveredError(Exception):
    """The name is not of the part of the grammar that is read."""


def demangled(name: str) -> str:
    """Return *name* as its author wrote it, without types; itself if it is no such name."""
    stem, dot, clone = name.partition(".")
    if len(name) > _LONGEST or not _MANGLED.fullmatch(stem):
        return name
    try:
        path = _Reader(stem).function()
    except _NotCoveredError:
        return name
    if len(path) > 1 and _RUST_HASH.fullmatch(path[-1]):
        del path[-1]
    return "::".join(path) + (f" [clone .{clone}]" if dot else "")


class _Reader:
    """One name, read from its beginning; raises _NotCoveredError."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = len("_Z")
        self._depth = 0

    def function(self) -> list[str]:
        """Return namespaces, classes and the function itself. Its types are not read."""
        self._takes(_THUNK)
        return self._name()

    def _name(self) -> list[str]:
        self._deeper()
        if self._take("N"):
            path = self._nested()
        elif self._take("Z"):
            path = self._local()
        else:
            path = ["std"] if self._take("St") else []
            path = [*path, self._unqualified(path)]
            if self._take("I"):
                self._skip_arguments()
        self._depth -= 1
        return path

    def _local(self) -> list[str]:
        """Return the name of what is inside of a function."""
        path = self.function()
        while not self._take("E"):
            self._skip_type()
        if self._take("s"):
            return path
        return [*path, *self._name()]

    def _nested(self) -> list[str]:
        self._takes(_QUALIFIERS)
        path: list[str] = []
        while not self._take("E"):
            if self._take("I"):
                self._skip_arguments()
            elif self._take("M"):
                continue
            elif not path and self._take("St"):
                path.append("std")
            elif not path and self._text.startswith("S", self._at):
                path.append(self._abbreviated())
            else:
                path.append(self._unqualified(path))
        if not path:
            raise _NotCoveredError
        return path

    def _abbreviated(self) -> str:
        standard = _STANDARD.get(self._text[self._at + 1 : self._at + 2])
        if standard is None:
            raise _NotCoveredError
        self._at += 2
        return standard

    def _unqualified(self, path: list[str]) -> str:
        self._take("L")
        name = self._unqualified_name(path)
        while self._take("B"):
            self._source_name()
        return name

    def _unqualified_name(self, path: list[str]) -> str:
        two = self._text[self._at : self._at + 2]
        if two[:1].isdigit():
            name = self._source_name()
            return "(anonymous namespace)" if name.startswith(_ANONYMOUS) else name
        self._at += len(two)
        if two in _OPERATORS:
            return f"operator{_OPERATORS[two]}"
        if path and two in {"C1", "C2", "C3", "C4", "C5", "D0", "D1", "D2", "D4", "D5"}:
            own = path[-1].rpartition("::")[2]
            return own if two[0] == "C" else f"~{own}"
        if two == "li":
            return f'operator"" {self._source_name()}'
        if two == "Ut":
            self._require(_SEQUENCE)
            return "{unnamed}"
        if two == "Ul":
            while not self._take("E"):
                self._skip_type()
            self._require(_SEQUENCE)
            return "{lambda}"
        raise _NotCoveredError

    def _source_name(self) -> str:
        length = int(self._require(_NUMBER))
        name = self._text[self._at : self._at + length]
        if len(name) < length:
            raise _NotCoveredError
        self._at += length
        return name

    def _skip_arguments(self) -> None:
        """Pass over what a template is given, of which the `I` has been read."""
        self._deeper()
        while not self._take("E"):
            if self._take("J"):
                self._skip_arguments()
            elif self._take("L"):
                self._skip_type()
                self._require(_LITERAL)
            else:
                self._skip_type()
        self._depth -= 1

    def _skip_type(self) -> None:
        self._deeper()
        self._takes(_TYPE_PREFIXES)
        if self._text.startswith("St", self._at):
            self._name()
        elif self._take("S") or self._take("T"):
            self._skip_reference()
        elif self._take("N"):
            self._skip_nested()
        elif not self._takes_compound() and not self._takes(_BUILTIN):
            self._name()
        if self._take("I"):
            self._skip_arguments()
        self._depth -= 1

    def _takes_compound(self) -> bool:
        """Pass over a function, an array, or a pointer to a member, if one is there."""
        if self._take("F"):
            self._take("Y")
            while not self._take("E"):
                self._skip_type()
        elif self._take("A"):
            self._takes(_NUMBER)
            if not self._take("_"):
                raise _NotCoveredError
            self._skip_type()
        elif self._take("M"):
            self._skip_type()
            self._skip_type()
        else:
            return False
        return True

    def _skip_reference(self) -> None:
        """Pass over what refers to something before, or to one of `_STANDARD`."""
        if not self._takes(_SEQUENCE):
            self._at += 1

    def _skip_nested(self) -> None:
        """Pass over the name of a type, which may begin with one that was there before."""
        self._takes(_QUALIFIERS)
        path = ["?"]
        while not self._take("E"):
            if self._take("I"):
                self._skip_arguments()
            elif self._take("S") or self._take("T"):
                self._skip_reference()
            else:
                path.append(self._unqualified(path))

    def _deeper(self) -> None:
        self._depth += 1
        if self._depth > _DEEPEST or self._at >= len(self._text):
            raise _NotCoveredError

    def _take(self, text: str) -> bool:
        is_there = self._text.startswith(text, self._at)
        self._at += len(text) if is_there else 0
        return is_there

    def _takes(self, pattern: re.Pattern[str]) -> str:
        found = pattern.match(self._text, self._at)
        if found is None:
            return ""
        self._at = found.end()
        return found[0]

    def _require(self, pattern: re.Pattern[str]) -> str:
        found = self._takes(pattern)
        if not found:
            raise _NotCoveredError
        return found
