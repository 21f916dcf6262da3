"""The four kinds of panels that the dashboards consist of, all in the same style.

Each takes a title, a sentence or two that say what to do, and queries. Its description ends with
what the metric table says of the families that it reads.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from string import ascii_uppercase
from typing import TypeVar

from dashboards.generator.queries import Query
from dashboards.generator.variables import DATASOURCE
from grafana_foundation_sdk.builders import (
    common,
    dashboard,
    heatmap,
    prometheus,
    stat,
    table,
    timeseries,
)
from grafana_foundation_sdk.models import units
from grafana_foundation_sdk.models.common import (
    BigValueColorMode,
    BigValueGraphMode,
    LegendDisplayMode,
    LegendPlacement,
    SortOrder,
    TooltipDisplayMode,
    VisibilityMode,
)
from grafana_foundation_sdk.models.dashboard import (
    DataTransformerConfig,
    DynamicConfigValue,
    Threshold,
    ThresholdsMode,
)
from grafana_foundation_sdk.models.heatmap import HeatmapColorMode
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

__all__ = ["Column", "Curve", "Panel", "Step", "curves", "figure", "heat", "listing"]

Panel = heatmap.Panel | stat.Panel | table.Panel | timeseries.Panel

_P = TypeVar("_P", heatmap.Panel, stat.Panel, table.Panel, timeseries.Panel)

_FINE = "green"


@dataclass(frozen=True, slots=True)
class Step:
    """The color that a value has from *value* on."""

    value: float
    color: str


@dataclass(frozen=True, slots=True)
class Curve:
    """A query and how its series are named."""

    query: Query
    legend: str


@dataclass(frozen=True, slots=True)
class Column:
    """A column of numbers."""

    title: str
    query: Query
    unit: str
    steps: tuple[Step, ...] = ()


def figure(  # noqa: PLR0913 - what a figure consists of
    title: str, text: str, unit: str, query: Query, *, empty: str, steps: Sequence[Step] = ()
) -> stat.Panel:
    """Return one number, as it stands now."""
    target = _target("A", query).instant()
    panel = _dressed(stat.Panel(), title, text, (query,), empty).with_target(target)
    return (
        panel.unit(unit)
        .thresholds(_thresholds(steps))
        .color_mode(BigValueColorMode.VALUE)
        .graph_mode(BigValueGraphMode.NONE)
        .reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
    )


def curves(  # noqa: PLR0913 - what a graph consists of
    title: str,
    text: str,
    unit: str,
    drawn: Sequence[Curve],
    *,
    empty: str,
    most: float | None = None,
) -> timeseries.Panel:
    """Return values over time, from 0 up to *most* or what there is."""
    panel = _dressed(timeseries.Panel(), title, text, [each.query for each in drawn], empty)
    for letter, each in zip(ascii_uppercase, drawn, strict=False):
        target = _target(letter, each.query).range().legend_format(each.legend)
        panel.with_target(target)
    if most is not None:
        panel.max(most)
    legend = common.VizLegendOptions().show_legend(True).display_mode(LegendDisplayMode.LIST)
    tooltip = common.VizTooltipOptions().mode(TooltipDisplayMode.MULTI)
    return (
        panel.unit(unit)
        .min(0)
        .line_width(1)
        .fill_opacity(10)
        .show_points(VisibilityMode.NEVER)
        .legend(legend.placement(LegendPlacement.BOTTOM))
        .tooltip(tooltip.sort(SortOrder.DESCENDING))
    )


def heat(title: str, text: str, buckets: Query, *, empty: str) -> heatmap.Panel:
    """Return how often each duration occurs, over time."""
    target = _target("A", buckets).range().legend_format("{{le}}")
    panel = _dressed(heatmap.Panel(), title, text, (buckets,), empty)
    color = heatmap.HeatmapColorOptions().mode(HeatmapColorMode.SCHEME).scheme("Oranges")
    tooltip = heatmap.HeatmapTooltip().mode(TooltipDisplayMode.SINGLE).y_histogram(True)
    return (
        panel.with_target(target.format(PromQueryFormat.HEATMAP))
        .calculate(False)
        .unit(units.Seconds)
        .y_axis(heatmap.YAxisConfig().unit(units.Seconds))
        .cell_values(heatmap.CellValues().unit(units.CountsPerSecond))
        # Empty cells would hide the background.
        .filter_values(heatmap.FilterValueRange().le(1e-9))
        .color(color.exponent(0.5).steps(64))
        .tooltip(tooltip)
        .show_legend()
    )


def listing(  # noqa: PLR0913 - what a table consists of
    title: str,
    text: str,
    labels: dict[str, str],
    columns: Sequence[Column],
    *,
    empty: str,
    links: dict[str, str] | None = None,
) -> table.Panel:
    """Return a row for each series, the highest first column of numbers first.

    *labels* are shown, in their order, under the titles that they have there; the cells of those in
    *links* lead to a URL.
    """
    panel = _dressed(table.Panel(), title, text, [each.query for each in columns], empty)
    for letter, each in zip(ascii_uppercase, columns, strict=False):
        target = _target(letter, each.query).instant()
        panel.with_target(target.format(PromQueryFormat.TABLE))
    for transformation in _one_table(labels, columns):
        panel.with_transformation(transformation)
    for each in columns:
        panel.override_by_name(each.title, _cell(each))
    for label, url in (links or {}).items():
        link = {"title": "Details", "url": url}
        panel.override_by_name(labels[label], [DynamicConfigValue("links", [link])])
    order = common.TableSortByFieldState().display_name(columns[0].title).desc(True)
    return panel.unit(columns[0].unit).show_header(True).sort_by([order])


def _dressed(panel: _P, title: str, text: str, queries: Sequence[Query], empty: str) -> _P:
    return (
        panel.title(title)
        .description(_description(text, queries))
        .datasource(DATASOURCE)
        .no_value(empty)
    )


def _description(text: str, queries: Sequence[Query]) -> str:
    families = dict.fromkeys(family for query in queries for family in query.families)
    return "\n".join([text, "", *(f"* `{each.name}`: {each.help}" for each in families)])


def _target(letter: str, query: Query) -> prometheus.Dataquery:
    return prometheus.Dataquery().ref_id(letter).datasource(DATASOURCE).expr(query.expr)


def _thresholds(steps: Sequence[Step]) -> dashboard.ThresholdsConfig:
    return (
        dashboard.ThresholdsConfig()
        .mode(ThresholdsMode.ABSOLUTE)
        .steps([Threshold(None, _FINE), *(Threshold(each.value, each.color) for each in steps)])
    )


def _one_table(
    labels: dict[str, str], columns: Sequence[Column]
) -> Iterator[DataTransformerConfig]:
    # Grafana names a table's values after its query where there are several.
    names = ["Value"]
    if len(columns) > 1:
        names = [f"Value #{letter}" for letter, _ in zip(ascii_uppercase, columns, strict=False)]
        yield DataTransformerConfig("merge", options={})
    shown = [*labels, *names]
    titles = [*labels.values(), *(each.title for each in columns)]
    options = {
        "excludeByName": {"Time": True},
        "indexByName": {name: place for place, name in enumerate(shown)},
        "renameByName": dict(zip(shown, titles, strict=True)),
    }
    yield DataTransformerConfig("organize", options=options)


def _cell(column: Column) -> list[DynamicConfigValue]:
    values = [DynamicConfigValue("unit", column.unit)]
    if column.steps:
        values += [
            DynamicConfigValue("thresholds", _thresholds(column.steps).build()),
            DynamicConfigValue("custom.cellOptions", {"type": "color-text"}),
        ]
    return values
