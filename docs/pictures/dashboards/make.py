"""Makes docs/pictures/dashboard-*.png: dashboards of programs that it runs and watches.

Needs root, Node and Chromium. Grafana's own components draw what Prometheus answers; neither a
Grafana server nor its heatmaps are part of that, so lines with heatmaps are left out. Runs with
PYTHONPATH=agent:tests, for it traces the programs as tests/live does.
"""
# ruff: noqa: INP001, S607 - a script, and its tools are found on the path

import itertools
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from support.commands.serve import serving
from support.deploy.dashboards import DASHBOARDS, Json, with_values
from support.prometheus.server import Answer, Prometheus, prometheus, scraping

_FOLDER = Path(__file__).resolve().parent
_PICTURES = _FOLDER.parent
_ROOT = _FOLDER.parents[2]
_WORKLOADS = _ROOT / "tests" / "workloads"
_EXAMPLES = _ROOT / "docs" / "examples"
_PYTHON = "/usr/bin/python3"
_LABELS = {"cluster": "demo", "namespace": "shop", "pod": "web-0", "instance": "web-0:9845"}

_WIDTH_PX, _LINE_PX = 1500, 38
_BEFORE_S, _AFTER_S, _RATE = 30, 60, "8s"
_SHOWN = {"overview": ("At this moment", "Which processes suffer", "Since when")}
_LOADERS = [f"--loader:.{kind}=dataurl" for kind in ("svg", "woff", "woff2", "ttf")]
_LEGEND = re.compile(r"{{(\w+)}}")


def main() -> None:
    """Watch the programs, one of which begins to suffer later, and draw what is seen."""
    with tempfile.TemporaryDirectory() as folder:
        _bundle(Path(folder))
        with ExitStack() as stack:
            _run(stack, _EXAMPLES / "quotes_before.py", _EXAMPLES / "quotes_client.py")
            service = stack.enter_context(serving("--match", r"quotes_before|convoy\.py"))
            target = f"{service.host}:{service.port}"
            server = stack.enter_context(prometheus(scraping(target, "gilscope", _LABELS)))
            time.sleep(_BEFORE_S)
            _run(stack, _WORKLOADS / "convoy.py", _WORKLOADS / "convoy_client.py")
            time.sleep(_AFTER_S)
            for name, titles in _SHOWN.items():
                _draw(server, name, titles, Path(folder))


def _run(stack: ExitStack, server: Path, client: Path) -> None:
    """Start a server that says its port in its first line, and its client."""
    for_the_port = subprocess.Popen((_PYTHON, server), stdout=subprocess.PIPE, text=True)
    stack.enter_context(for_the_port)
    stack.callback(for_the_port.terminate)
    first = for_the_port.stdout.readline() if for_the_port.stdout else ""
    port = str(json.loads(first)["port"]) if first.startswith("{") else first.strip()
    arguments = ("--port", port) if server.name == "convoy.py" else (port,)
    asking = subprocess.Popen((_PYTHON, client, *arguments), stdout=subprocess.DEVNULL)
    stack.enter_context(asking)
    stack.callback(asking.terminate)


def _bundle(folder: Path) -> None:
    for name in ("main.jsx", "page.html", "package.json"):
        shutil.copy(_FOLDER / name, folder)
    install = ("npm", "install", "--ignore-scripts", "--legacy-peer-deps")
    subprocess.run(install, cwd=folder, check=True)
    subprocess.run(("node", "node_modules/esbuild/install.js"), cwd=folder, check=True)
    esbuild = ("node_modules/.bin/esbuild", "main.jsx", "--bundle", "--outfile=bundle.js")
    settings = ('--define:process.env.NODE_ENV="production"', "--define:global=window")
    subprocess.run((*esbuild, "--jsx=automatic", *settings, *_LOADERS), cwd=folder, check=True)


def _draw(server: Prometheus, name: str, titles: tuple[str, ...], folder: Path) -> None:
    now_s = time.time()
    panels = list(_answered(server, name, titles))
    shown = {
        "from": (now_s - _BEFORE_S - _AFTER_S) * 1000,
        "to": now_s * 1000,
        "width": _WIDTH_PX - 8,
        "panels": panels,
    }
    (folder / "data.js").write_text(f"window.shown = {json.dumps(shown)};\n")
    lines = max(panel["place"]["y"] + panel["place"]["h"] for panel in panels)
    window = f"--window-size={_WIDTH_PX},{lines * _LINE_PX + 8}"
    command = ("chromium", "--headless", "--no-sandbox", "--hide-scrollbars", "--disable-gpu")
    with tempfile.TemporaryDirectory() as profile:
        subprocess.run(
            (
                *command,
                *(f"--user-data-dir={profile}", "--allow-file-access-from-files", window),
                "--virtual-time-budget=8000",
                f"--screenshot={_PICTURES / f'dashboard-{name}.png'}",
                str(folder / "page.html"),
            ),
            check=True,
            stderr=subprocess.DEVNULL,
        )


def _answered(server: Prometheus, name: str, titles: tuple[str, ...]) -> Iterator[Json]:
    section = ""
    for panel in DASHBOARDS[name]["panels"]:
        is_heading = panel["type"] == "row"
        section = panel["title"] if is_heading else section
        if section not in titles:
            continue
        shown = {key: panel[key] for key in ("id", "title", "type")}
        shown |= {"place": panel["gridPos"], "description": panel.get("description", "")}
        if is_heading:
            yield shown
            continue
        shown["settings"] = panel["fieldConfig"]["defaults"]
        answers = [_asked(server, target) for target in panel["targets"]]
        if panel["type"] == "stat":
            shown["value"] = answers[0].values()[0]
        elif panel["type"] == "table":
            shown["columns"] = _columns(panel, answers)
        else:
            shown["legend"] = panel["options"]["legend"]
            shown["series"] = [
                _line(each, target["legendFormat"])
                for target, answer in zip(panel["targets"], answers, strict=True)
                for each in answer.series
            ]
        yield shown


def _asked(server: Prometheus, target: Json) -> Answer:
    span_s = _BEFORE_S + _AFTER_S
    expr = with_values(target["expr"], __rate_interval=_RATE, __range=f"{span_s}s")
    return server.now(expr) if target["instant"] else server.over(expr, span_s)


def _line(series: Json, legend: str) -> Json:
    name = _LEGEND.sub(lambda found: series["metric"].get(found[1], ""), legend)
    times, values = zip(*series["values"], strict=True)
    numbers = [float(value) for value in values]
    return {
        "name": name,
        "times": [1000 * seconds for seconds in times],
        "values": [None if number != number else number for number in numbers],  # noqa: PLR0124
    }


def _columns(panel: Json, answers: list[Answer]) -> list[Json]:
    """Return what Grafana would make of the answers: one row for each set of labels."""
    options = panel["transformations"][-1]["options"]
    names = sorted(options["renameByName"], key=options["indexByName"].__getitem__)
    labels = [name for name in names if not name.startswith("Value")]
    numbers: dict[tuple[str, ...], list[float | None]] = {}
    for place, answer in enumerate(answers):
        for series in answer.series:
            row = tuple(series["metric"].get(label, "") for label in labels)
            cells = numbers.setdefault(row, [None] * len(answers))
            value = float(series["value"][1])
            cells[place] = None if value != value else value  # noqa: PLR0124
    rows = sorted(numbers.items(), key=lambda item: item[1][0] or 0, reverse=True)
    overrides = {
        each["matcher"]["options"]: {part["id"]: part["value"] for part in each["properties"]}
        for each in panel["fieldConfig"]["overrides"]
    }
    titles = [options["renameByName"][name] for name in names]
    columns = [[*row, *cells] for row, cells in rows]
    # Containers have no row here: nothing is scraped that knows their names.
    values = list(itertools.zip_longest(*columns)) or [()] * len(titles)
    return [
        {"title": title, "values": list(cells), "settings": _settings(overrides.get(title, {}))}
        for title, cells in zip(titles, values, strict=True)
    ]


def _settings(properties: Json) -> Json:
    cell = properties.get("custom.cellOptions", {"type": "auto"})
    return {
        "unit": properties.get("unit", "string"),
        "thresholds": properties.get("thresholds", {}),
        "custom": {"cellOptions": cell},
    }


if __name__ == "__main__":
    sys.exit(main())
