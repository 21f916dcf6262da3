"""HTML is made in such a way that it cannot be forgotten to escape what is not ours."""

from pathlib import Path

import pytest

import gilscope
from support.reports.html_source import html_outside_of_markup, loose_elements, loose_markup

_PACKAGE = Path(gilscope.__file__).parent
_MODULES = {str(path.relative_to(_PACKAGE)): path for path in sorted(_PACKAGE.rglob("*.py"))}
_SHOWN = [
    name for name in _MODULES if name.startswith(("naming/origins", "reports/", "top/", "web/"))
]
"""What makes pages, or could."""

_TRUSTED = {
    "reports/html/markup.py": {
        "asset": "what gilscope ships, whole, in an element of its own",
        "embedded_json": "leaves no bracket in it",
        "numbered": "changes names in what is markup already",
        "joined": "escapes by itself, being faster than `Markup.join`",
        "tag": "escapes by itself, being faster than `Markup.format`",
    },
    "naming/origins.py": {
        "origin_of": "knows Python's own names of files, which are no tags",
        "is_made": "likewise, of code without a file",
        "_is_made_by_library": "knows Python's own names of functions, likewise",
    },
}


@pytest.mark.parametrize("module", _MODULES)
def test_html_is_a_literal_or_has_been_escaped(module: str) -> None:
    """
    `Markup` is made of literals; what is put into them is escaped by it.
    """
    assert [] == loose_markup(_MODULES[module].read_text(), _TRUSTED.get(module))


@pytest.mark.parametrize("module", _SHOWN)
def test_tags_stand_in_markup_alone(module: str) -> None:
    """
    No string becomes HTML without being `Markup` from the beginning.
    """
    assert [] == html_outside_of_markup(_MODULES[module].read_text(), _TRUSTED.get(module))


def test_trusted_functions_are_there() -> None:
    """
    The list has nothing that is gone.
    """
    for module, functions in _TRUSTED.items():
        source = _MODULES[module].read_text()
        assert [] == [name for name in functions if f"\ndef {name}(" not in source]


@pytest.mark.parametrize(
    "source",
    [
        "Markup(name)",
        "Markup(f'<b>{name}</b>')",
        "Markup('<b>' + name)",
        "Markup('<b>%s' % name)",
        "Markup('<b>{}'.format(name))",
        "Markup(object=name)",
        "Markup(*parts)",
        "map(Markup, names)",
        "cast(Markup, name)",
        "make = Markup",
        "import markupsafe",
        "from markupsafe import Markup as M",
        "from markupsafe import soft_str",
        "library.Markup(name)",
        "class Name(str):\n    def __html__(self): return self",
        "def trusted():\n    pass\nMarkup(name)",
    ],
)
def test_loose_markup_is_found(source: str) -> None:
    """
    Whatever way it is made that nothing escapes.
    """
    assert [] != loose_markup(source, {"trusted": "in it alone"})


@pytest.mark.parametrize(
    "source",
    [
        "Markup('<b>{}</b>').format(name)",
        "Markup('<b>%s</b>') % name",
        "Markup('<br>').join(names)",
        "Markup('<b>'\n'</b>')",
        "Markup()",
        "def f(a: Markup, *b: Markup) -> Iterator[Markup]:\n    c: list[Markup] = []",
        "from markupsafe import Markup, escape",
        "def trusted():\n    return Markup(name)",
    ],
)
def test_what_escapes_is_let_through(source: str) -> None:
    """
    The ways in which HTML is made, and the type.
    """
    assert [] == loose_markup(source, {"trusted": "it escapes"})


@pytest.mark.parametrize("module", _SHOWN)
def test_names_of_elements_are_literals(module: str) -> None:
    """
    And those of their attributes, which nothing escapes.
    """
    assert [] == loose_elements(_MODULES[module].read_text())


@pytest.mark.parametrize(
    "source",
    ["tag(name, 'x')", "tag('b', 'x', **attributes)", "tag(*parts)", "map(tag, names)"],
)
def test_loose_element_is_found(source: str) -> None:
    """
    Whatever way a name gets into it.
    """
    assert ["line 1: tag"] == loose_elements(source)
    assert [] == loose_elements("tag('b', name, *parts, class_=look)")


@pytest.mark.parametrize(
    "source",
    [
        "x = '<b>'",
        "x = f'<b>{name}</b>'",
        "x = f'{name}</b>'",
        "x = f'<{name}>'",
        "x = f'</{name}>'",
        "x = '<' + name",
        "x = '<b>' + Markup('</b>')",
        "x = '<b>%s</b>' % name",
        "x = '<b>{}</b>'.format(name)",
        "x = '<br>'.join(names)",
        "x = ['<', name, '>']",
        "x = '<!doctype html>'",
        "escape('<b>')",
    ],
)
def test_html_outside_of_markup_is_found(source: str) -> None:
    """
    In one piece or in several.
    """
    assert 1 == len(html_outside_of_markup(source))


@pytest.mark.parametrize(
    "source",
    [
        "x = Markup('<b>{}</b>').format(name)",
        "x = '< 5 ms'",
        "x = f'{small} < {large}'",
        "x = 'a -> b'",
        "'''A doc string with <b>.'''",
    ],
)
def test_what_is_no_html_is_let_through(source: str) -> None:
    """
    Signs of comparison, arrows and doc strings.
    """
    assert [] == html_outside_of_markup(source)
