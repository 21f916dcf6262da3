"""Writes the page about overhead from the results; every number on it comes from them."""

from collections.abc import Iterator, Sequence

from bench import prose
from bench.agent_tables import (
    agent_table,
    attach_table,
    bar_table,
    crowd_table,
    parts_table,
    start_table,
)
from bench.bars import MOST_RATIO
from bench.conditions import AGAIN, CONDITIONS, CONTENTION, THREE_PROBES
from bench.markdown import key_table, ranged
from bench.measurement import Results
from bench.pictures import Picture
from bench.ratios import added_ns_per_unit, added_ns_per_wait, noise, spread
from bench.tables import (
    cost_table,
    coverage_table,
    latency_table,
    report_table,
    seen_table,
    switch_table,
    tight_table,
    windows_table,
)
from bench.works import FIGHT_OFTEN, TIGHT, WORKS

__all__ = ["page"]

_BYTES_PER_GB = 1_000_000_000
_S_PER_MIN = 60
_PER_CENT = 100
_PROBES_OF_PEER = 3


def page(results: Results, pictures: Sequence[Picture], stm: str) -> str:
    """Return the page as Markdown, one sentence a line; *pictures* lie in a folder beside it.

    *stm* is the section about STM logs, which are measured by themselves.
    """
    tight, others, latency, report = map(_shown, pictures)
    parts = [
        prose.HEAD + (prose.QUICK if results.is_quick else ""),
        "## The machine\n",
        key_table(_machine(results)),
        "## The target\n",
        prose.COST,
        cost_table(results),
        _noise(results),
        tight,
        others,
        prose.WORKLOADS,
        "## Latency\n",
        prose.LATENCY,
        latency_table(results),
        latency,
        "## Context switches\n",
        prose.SWITCHES,
        switch_table(results),
        "## What gilscope says that it costs\n",
        prose.REPORT,
        report_table(results),
        report,
        prose.COVERAGE,
        coverage_table(results),
        prose.WINDOWS,
        windows_table(results),
        "## One uncontended release and acquire\n",
        tight_table(results),
        "## One contended wait\n",
        prose.CONTENDED + _contended(results),
        "## The tool itself\n",
        agent_table(results),
        prose.TOOLS,
        seen_table(results),
        "## Many targets\n",
        prose.CROWDS,
        crowd_table(results.crowds),
        prose.PARTS,
        parts_table(results.crowds),
        "## Attach\n",
        prose.ATTACH,
        attach_table(results),
        prose.START,
        start_table(results),
        "## STM logs\n",
        stm,
        "## Bars\n",
        bar_table(results),
        "## How to read this\n",
        prose.READING,
        "## What is not measured\n",
        prose.NOT_MEASURED,
    ]
    return "\n".join(parts)


def _shown(picture: Picture) -> str:
    return f"![{picture.alt}](pictures/{picture.name})\n"


def _machine(results: Results) -> list[tuple[str, str]]:
    machine = results.machine
    where = "a virtual machine" if machine.is_virtual else "no hypervisor seen"
    state = (
        f"load average {results.load_before:.2f} before,"
        f" {results.stolen * _PER_CENT:.1f} % of the CPU time stolen by the hypervisor meanwhile"
    )
    return [
        ("CPU", f"{machine.cpu}, {machine.cpus} usable, {where}"),
        ("memory", f"{machine.memory_bytes / _BYTES_PER_GB:.1f} GB"),
        ("kernel", machine.kernel),
        ("system", machine.system),
        *machine.versions,
        ("workloads run on", f"`{results.interpreter}`"),
        ("date", results.date),
        ("command", f"`{results.command}`"),
        ("rounds", str(results.rounds)),
        ("duration", f"{results.took_s / _S_PER_MIN:.1f} minutes, everything on this page"),
        ("state", state),
    ]


def _noise(results: Results) -> str:
    wide = []
    for work in WORKS:
        reach = noise(results.runs, work)
        if reach > MOST_RATIO - 1:
            wide.append(f"{work.title} (up to {_PER_CENT * reach:.1f} %)")
    if wide:
        lines = [
            f"The noise floor is wider than 1 % in: {'; '.join(wide)}.",
            "A difference smaller than the noise floor of its column says nothing.",
        ]
    else:
        lines = ["The noise floor lies within 1 % of 1 in every column."]
    return "".join(f"{line}\n" for line in (*lines, *_gaps(results)))


def _gaps(results: Results) -> Iterator[str]:
    """Yield a sentence for everything that is missing."""
    for title, reason in results.left_out:
        yield f"Not measured here: {title} ({reason})."
    titles = {condition.key: condition.title for condition in CONDITIONS}
    for failure in results.failures:
        yield (
            f"Failed in round {failure.round + 1} of {failure.workload}:"
            f" {titles[failure.condition]} ({failure.reason})."
        )


def _contended(results: Results) -> str:
    runs = results.runs
    added = added_ns_per_wait(runs, FIGHT_OFTEN, CONTENTION, CONTENTION)
    floor = added_ns_per_wait(runs, FIGHT_OFTEN, AGAIN, CONTENTION)
    text = ""
    if added and floor:
        text += (
            f"In *{FIGHT_OFTEN.title}* the target spent {ranged(added, 0)} ns more for each wait in"
            f" contention mode, and {ranged(floor, 0)} ns more in the untraced run that shows the"
            " noise.\n"
        )
        if spread(added).median <= spread(floor).high:
            text += "That is too little to stand out from the noise.\n"
    three = added_ns_per_unit(runs, TIGHT, THREE_PROBES)
    if three:
        one_ns = spread(three).median / _PROBES_OF_PEER
        text += (
            f"An estimate with less noise: each of the three BCC probes added {one_ns:.0f} ns to a"
            f" pair in *{TIGHT.title}*, so two of the kind come to about {2 * one_ns:.0f} ns;"
            " the programs of gilscope do more, but no return probe is among them.\n"
        )
    return text
