"""Draws the rooms of the package and what they import, as docs/architecture.md shows them.

PYTHONPATH=agent:tests .venv/bin/python docs/pictures/house.py
"""
# ruff: noqa: INP001 - a script, which a test imports

from collections.abc import Mapping
from pathlib import Path

from support.imports import MODULES, own_imports

__all__ = ["drawn", "floors", "rooms"]

Graph = Mapping[str, frozenset[str]]
"""Rooms, and for each those that it imports from."""
PICTURE = Path(__file__).with_name("house.svg")
_WIDTH, _BOX_WIDTH, _BOX_HEIGHT, _FLOOR_HEIGHT = 920, 108, 34, 66
_STYLE = """\
rect { fill: #e8eef7; stroke: #42608c; rx: 4; }
text { font: 13px sans-serif; text-anchor: middle; fill: #1c2733; }
path { fill: none; stroke: #42608c; stroke-opacity: 0.35; }
@media (prefers-color-scheme: dark) {
  rect { fill: #22304a; stroke: #8fb0e0; } text { fill: #e6edf6; }
  path { stroke: #8fb0e0; }
}"""


def rooms() -> Graph:
    """Return the rooms, and for each those that it imports from."""
    found: dict[str, frozenset[str]] = {}
    for module in MODULES:
        room = module.partition(".")[0]
        if room:
            others = {name.partition(".")[0] for name in own_imports(module)}
            found[room] = found.get(room, frozenset()) | (others - {room})
    return found


def floors(graph: Graph) -> list[list[str]]:
    """Return the rooms by floor, lowest first: each one above all that it imports from.

    Raises ValueError where rooms import each other in a circle.
    """
    floor_of: dict[str, int] = {}
    while len(floor_of) < len(graph):
        ready = [room for room in graph if room not in floor_of and graph[room] <= floor_of.keys()]
        if not ready:
            raise ValueError(f"rooms in a circle: {sorted(graph.keys() - floor_of)}")
        for room in ready:
            floor_of[room] = 1 + max((floor_of[below] for below in graph[room]), default=-1)
    count = 1 + max(floor_of.values())
    return [sorted(room for room in graph if floor_of[room] == each) for each in range(count)]


def drawn(graph: Graph) -> str:
    """Return the picture. A line leads to a room that is not reached through another one."""
    by_floor = floors(graph)
    height = len(by_floor) * _FLOOR_HEIGHT + 20
    centre_of = {}
    for number, on_floor in enumerate(by_floor):
        for place, room in enumerate(on_floor):
            x = _WIDTH * (2 * place + 1) // (2 * len(on_floor))
            centre_of[room] = (x, height - 10 - number * _FLOOR_HEIGHT - _FLOOR_HEIGHT // 2)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img">',
        "<title>The rooms of gilscope, each above those that it imports from</title>",
        f"<style>{_STYLE}</style>",
    ]
    lines += [
        _line(centre_of[room], centre_of[below])
        for room in sorted(graph)
        for below in sorted(_nearest(graph, room))
    ]
    for room in sorted(graph):
        lines += _box(room, *centre_of[room])
    return "\n".join([*lines, "</svg>", ""])


def _nearest(graph: Graph, room: str) -> frozenset[str]:
    return graph[room].difference(*(_all_below(graph, below) for below in graph[room]))


def _all_below(graph: Graph, room: str) -> frozenset[str]:
    return graph[room].union(*(_all_below(graph, below) for below in graph[room]))


def _line(upper: tuple[int, int], lower: tuple[int, int]) -> str:
    (x1, y1), (x2, y2) = upper, lower
    top, bottom = y1 + _BOX_HEIGHT // 2, y2 - _BOX_HEIGHT // 2
    return f'<path d="M{x1} {top}C{x1} {top + 30} {x2} {bottom - 30} {x2} {bottom}"/>'


def _box(room: str, x: int, y: int) -> list[str]:
    left, top = x - _BOX_WIDTH // 2, y - _BOX_HEIGHT // 2
    return [
        f'<rect x="{left}" y="{top}" width="{_BOX_WIDTH}" height="{_BOX_HEIGHT}"/>',
        f'<text x="{x}" y="{y + 5}">{room}</text>',
    ]


if __name__ == "__main__":
    PICTURE.write_text(drawn(rooms()))
