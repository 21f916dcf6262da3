"""Finds in source code how HTML is made, where that could forget to escape."""

import ast
import re
from collections.abc import Iterator, Mapping

__all__ = ["html_outside_of_markup", "loose_elements", "loose_markup"]

_TAG = re.compile(r"<(?:[a-zA-Z/!]|$)")
_HOLE = "x"
"""Stands for what an f-string, or a sum of strings, puts in: it can be the name of a tag."""
_Function = ast.FunctionDef | ast.AsyncFunctionDef


def loose_markup(source: str, trusted: Mapping[str, str] | None = None) -> list[str]:
    """Return where *source* calls HTML what is no literal, outside of the *trusted* functions.

    That is `Markup` of something else, under another name, or handed on, and an object that says by
    itself that it is HTML.
    """
    tree = ast.parse(source)
    parents = _parents(tree)
    annotations = {id(node) for each in _annotations(tree) for node in ast.walk(each)}
    return [
        _place(node)
        for node in ast.walk(tree)
        if id(node) not in annotations
        and (_says_that_it_is_html(node) or _is_loose(node, parents))
        and _function(node, parents) not in (trusted or {})
    ]


def loose_elements(source: str) -> list[str]:
    """Return where *source* makes an element whose name, or those of attributes, are variables."""
    tree = ast.parse(source)
    parents = _parents(tree)
    return [
        _place(node)
        for node in ast.walk(tree)
        if isinstance(node, ast.Name)
        and node.id == "tag"
        and not _has_a_literal_name(parents[node], node)
    ]


def html_outside_of_markup(source: str, trusted: Mapping[str, str] | None = None) -> list[str]:
    """Return where a string of *source* has a tag and is no literal of `Markup`."""
    tree = ast.parse(source)
    parents = _parents(tree)
    return [
        _place(node)
        for node in ast.walk(tree)
        if _TAG.search(_text(node))
        and not isinstance(parents[node], ast.Expr)
        and not _text(parents[node])
        and not _is_call(parents[node], "Markup")
        and _function(node, parents) not in (trusted or {})
    ]


def _text(node: ast.AST) -> str:
    """Return the string that *node* is, with `_HOLE` for what is not known; else nothing."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(_text(part) or _HOLE for part in parts)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return f"{_text(left) or _HOLE}{_text(right) or _HOLE}"
    return ""


def _says_that_it_is_html(node: ast.AST) -> bool:
    match node:
        case ast.FunctionDef(name="__html__") | ast.Attribute(attr="Markup"):
            return True
        case ast.Import(names=names):
            return any(name.name == "markupsafe" for name in names)
        case ast.ImportFrom(module="markupsafe", names=names):
            return any(name.name not in ("Markup", "escape") or name.asname for name in names)
    return False


def _is_loose(node: ast.AST, parents: Mapping[ast.AST, ast.AST]) -> bool:
    if not isinstance(node, ast.Name) or node.id != "Markup":
        return False
    match parents[node]:
        case ast.Call(func=func, args=[] | [ast.Constant()], keywords=[]):
            return func is not node
    return True


def _has_a_literal_name(call: ast.AST, name: ast.Name) -> bool:
    match call:
        case ast.Call(func=func, args=[ast.Constant(), *_], keywords=keywords):
            return func is name and all(keyword.arg for keyword in keywords)
    return False


def _is_call(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name


def _annotations(tree: ast.AST) -> Iterator[ast.AST]:
    for node in ast.walk(tree):
        match node:
            case ast.arg(annotation=ast.AST() as annotation):
                yield annotation
            case ast.AnnAssign(annotation=annotation):
                yield annotation
            case ast.FunctionDef(returns=ast.AST() as annotation):
                yield annotation


def _parents(tree: ast.AST) -> dict[ast.AST, ast.AST]:
    return {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}


def _function(node: ast.AST, parents: Mapping[ast.AST, ast.AST]) -> str:
    """Return the name of the function of the module in which *node* is; else nothing."""
    name = ""
    while node in parents:
        name = node.name if isinstance(node, _Function) else name
        node = parents[node]
    return name


def _place(node: ast.AST) -> str:
    return f"line {getattr(node, 'lineno', 0)}: {ast.unparse(node)}"
