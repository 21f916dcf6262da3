"""What all pages have in common: head, machine, and what was not measured."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from bench.experiments.cells import MEASURED, Experiment, Results
from bench.experiments.inventory import index_table
from bench.markdown import NONE, key_table, ranged

__all__ = ["index", "page", "shown", "spread_of"]

_GAP = "\n"

_NOT_YET = """\
**There are no figures yet: it was not run on a machine that does nothing else.**
`make experiments ONLY={name}` measures it; until then what this page says of figures is what is expected.
"""
_INDEX = """\
# The experiments that the field was built on

Documents of 2010 to 2015 on the GIL, on PyPy-STM and on PyParallel have experiments, and this \
table has a row for each.
Those with a page were run again, with programs written afresh, and each page has the source's \
figures beside ours and says what gilscope adds: why the number is what it is.

"""
_HOW = """
## How they are run

    make experiments                   # all of them, as root, on a machine that does nothing else
    make experiments ONLY=convoy_udp   # one of them
    make experiments PLAN=1            # what would be run, and for how long
    make experiments QUICK=1           # one round each, for correctness alone: no clock is compared

- A cell is an arm of an experiment with all its parameters; the cells take turns, round after round, and each traced cell has an untraced one beside it.
- Before and after each timed cell a spin of 200 ms on each of its CPUs must get 90 % of it, and some task must have waited for a CPU in less than 5 % of that time; of all the time from the first spin to the last the hypervisor must have taken less than 5 % away. Otherwise the cell is `not measured: busy`, after three tries. Each page says what its cells had.
- Figures are the median of the rounds and their range, `[lowest..highest]`.
- Cells are kept as they are measured: a run that was stopped continues where it was. `WITHIN=25` stops after so many minutes, `AFRESH=1` begins anew.
- Everything that was measured is in `bench/experiments/results`, with the source's figures beside it.
"""


def index(found: Mapping[str, tuple[str, str]], experiments: Sequence[Experiment]) -> str:
    """Return the page with a row for each experiment of the sources."""
    pages: dict[str, list[str]] = {}
    for experiment in experiments:
        for key in experiment.sources:
            pages.setdefault(key, []).append(experiment.name)
    names = [experiment.name for experiment in experiments]
    return _INDEX + index_table(found, pages, names) + _HOW


def page(experiment: Experiment, results: Results, pictures: Iterable[str]) -> str:
    """Return the page of one experiment; *pictures* are the names of those that were drawn."""
    is_measured = any(each.state == MEASURED for each in results.outcomes)
    parts = [f"# {experiment.title}\n"]
    if not is_measured:
        parts.append(_NOT_YET.format(name=experiment.name))
    parts.append(experiment.body(results))
    parts += [f"![{experiment.title}](pictures/{name})\n" for name in pictures]
    if is_measured:
        parts += ["## How it was measured\n", key_table([*_about(results), *_disturbed(results)])]
    missing = list(_missing(results))
    if missing:
        parts.append("Without figures:\n\n" + "".join(f"- {line}\n" for line in missing))
    parts.append("[All experiments](README.md)\n")
    return _GAP.join(parts)


def shown(
    results: Results, figure: str, digits: int, unit: str = "", /, **axes: str | float
) -> str:
    """Return a figure's median and range over all rounds, why it has none, or a dash."""
    values = results.values(figure, **axes)
    if values:
        return ranged(values, digits, unit)
    # What was measured and has no such figure cannot have one.
    has_runs = next(results.measured(**axes), None) is not None
    reasons = [] if has_runs else results.reasons(**axes)
    return reasons[0] if reasons else NONE


def spread_of(results: Results, figure: str, **axes: str | float) -> tuple[float, float, float]:
    """Return the median, lowest and highest of a figure that was measured."""
    values = sorted(results.values(figure, **axes))
    middle = len(values) // 2
    median = values[middle] if len(values) % 2 else (values[middle - 1] + values[middle]) / 2
    return median, values[0], values[-1]


def _about(results: Results) -> list[tuple[str, str]]:
    return [
        (name, str(value))
        for name, value in results.about.items()
        if not isinstance(value, dict | list)
    ]


def _disturbed(results: Results) -> Iterator[tuple[str, str]]:
    """Yield what the cells that have figures had of their CPUs."""
    spins = [each.spin_share for each in results.measured() if each.spin_share is not None]
    stolen = [each.stolen_share for each in results.measured() if each.stolen_share is not None]
    if spins and stolen:
        yield "a spin got of each CPU, at least", f"{100 * min(spins):.0f} %"
        yield "the hypervisor took away, at most", f"{100 * max(stolen):.1f} %"


def _missing(results: Results) -> Iterator[str]:
    reasons: dict[str, list[str]] = {}
    for each in results.outcomes:
        if each.state != MEASURED:
            reasons.setdefault(each.state, []).append(f"{each.key}, round {each.round + 1}")
    for state, cells in reasons.items():
        yield f"{'; '.join(cells)}: {state}"
