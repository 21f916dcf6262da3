"""Tables of threads by role, of slow_drops, and of interpreters."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from markupsafe import Markup

from gilscope.model.gil import (
    ENDED_INTERPRETER,
    ProcessTotals,
    Recording,
    SlowDrop,
    Tally,
    ThreadTotals,
)
from gilscope.model.histogram import total
from gilscope.model.kinds import Kind
from gilscope.model.stack import Stack
from gilscope.naming.origins import Origin, origin_of
from gilscope.naming.places import IN_WORDS, SiteNames
from gilscope.reports.gil.text.holds import held_share
from gilscope.reports.gil.words import KIND_NAMES
from gilscope.reports.html.markup import EMPTY, figure, joined, share, tag, text, time_lost
from gilscope.text.units import percent
from gilscope.values import dataclass

__all__ = ["Role", "interpreters_section", "roles_of", "slow_drops_section", "threads_section"]

_OUTER_FRAMES = 3
"""Enough to understand how a thread came to where it stood."""


@dataclass(frozen=True, slots=True)
class Role:
    """What all threads of one role lost and held."""

    name: str
    threads: int
    lost: Mapping[Kind, Tally]
    held: Tally | None
    """None: the mode does not see holds."""

    @property
    def wait_ns(self) -> int:
        """Time lost waiting, of all kinds."""
        return sum(tally.ns for tally in self.lost.values())


def roles_of(threads: Sequence[ThreadTotals]) -> list[Role]:
    """Return the roles of *threads* that waited or held the GIL, the costliest first."""
    groups: dict[str, list[ThreadTotals]] = {}
    for thread in threads:
        groups.setdefault(thread.role or "starting", []).append(thread)
    roles = []
    for name, group in groups.items():
        held = [thread.held for thread in group if thread.held is not None]
        lost = {
            kind: sum((thread.lost.get(kind, Tally()) for thread in group), start=Tally())
            for kind in Kind
        }
        roles.append(Role(name, len(group), lost, sum(held, start=Tally()) if held else None))
    active = [role for role in roles if role.wait_ns or (role.held and role.held.ns)]
    return sorted(active, key=lambda role: (-role.wait_ns, role.name))


def threads_section(recording: Recording) -> Iterator[Markup]:
    """Yield what the threads of each role lost by kind, and held where that is seen."""
    totals = recording.observation.totals
    roles = roles_of(totals.threads)
    if not roles:
        return
    kinds = [kind for kind in KIND_NAMES if any(role.lost[kind] != Tally() for role in roles)]
    sees_holds = any(role.held is not None for role in roles)
    yield Markup('<section id="threads"><h2>Threads by role</h2>')
    yield Markup(
        "<p>A role is the function that a thread runs for its life. Of several threads their "
        "average lost that part of its time. Under the time of a kind stands its number of "
        "waits.</p>"
    )
    yield Markup('<div class="scroll" tabindex="0" role="region" aria-label="threads by role">')
    yield Markup('<table class="threads"><thead><tr><th scope="col">role</th>')
    headings = ["threads", "time lost", "of its time", *(KIND_NAMES[kind] for kind in kinds)]
    headings += ["held", "of the time", "holds"] if sees_holds else []
    yield _headings(headings)
    yield Markup("</tr></thead><tbody>")
    for role in roles:
        yield _role_row(role, kinds, recording, sees_holds=sees_holds)
    yield Markup("</tbody></table></div></section>")


def slow_drops_section(
    slow_drops: Sequence[SlowDrop], sources: Mapping[tuple[str, int], str], names: SiteNames
) -> Iterator[Markup]:
    """Yield the places where threads were slow to drop the GIL; nothing where there are none."""
    if not slow_drops:
        return
    yield Markup('<section id="slow-drops"><h2>Slow to drop the GIL</h2>')
    yield Markup(
        "<p>Places in which a thread kept the GIL although a waiting thread had asked for it. "
        "As a rule that is a call into C code that does not release the GIL.</p>"
    )
    yield Markup('<table class="by-place"><thead><tr><th scope="col">holder stood in</th>')
    yield _headings(("drop latency", "longest", "times"))
    yield Markup("</tr></thead><tbody>")
    for slow_drop in slow_drops:
        yield tag(
            "tr",
            tag("td", _place(slow_drop.holder, sources, names)),
            tag("td", time_lost(slow_drop.drop_latency.ns), class_="n"),
            tag("td", time_lost(slow_drop.longest_ns), _still(slow_drop), class_="n"),
            tag("td", slow_drop.drop_latency.count, class_="n"),
        )
    yield Markup("</tbody></table></section>")


def _still(slow_drop: SlowDrop) -> Markup:
    if not slow_drop.in_flight_ns:
        return EMPTY
    lasted = time_lost(slow_drop.in_flight_ns)
    return tag("span", f"still unanswered after {lasted}", class_="outer")


def interpreters_section(recording: Recording) -> Iterator[Markup]:
    """Yield the interpreters that have a GIL of their own; nothing where there is but one."""
    totals = recording.observation.totals
    if len(totals.gils) <= 1:
        return
    yield Markup('<section id="interpreters"><h2>Interpreters with a GIL of their own</h2>')
    yield Markup(
        '<table><thead><tr><th scope="col">interpreter</th><th scope="col" class="n">time lost'
    )
    yield Markup(
        '</th><th scope="col" class="n">waits</th><th scope="col" class="n">held</th></tr>'
    )
    yield Markup("</thead><tbody>")
    for gil in totals.gils:
        waits = total(gil.waits.values())
        number = gil.gil.interpreter_id
        name = "one that has ended" if number == ENDED_INTERPRETER else str(number)
        held = held_share(gil, totals, recording.duration_ns)
        about = "" if gil.holds is not None else "≈ "
        yield tag(
            "tr",
            tag("td", name),
            figure(waits.sum_ns),
            tag("td", waits.count, class_="n"),
            tag("td", "" if held is None else about + percent(held), class_="n"),
        )
    yield Markup("</tbody></table></section>")


def _headings(names: Iterable[str]) -> Markup:
    return joined(tag("th", name, scope="col", class_="n") for name in names)


def _role_row(
    role: Role, kinds: Sequence[Kind], recording: Recording, *, sees_holds: bool
) -> Markup:
    lived_ns = recording.duration_ns * role.threads
    cells = [
        tag("td", role.threads, class_="n"),
        figure(role.wait_ns),
        tag("td", share(role.wait_ns, lived_ns), class_="n"),
        *(_kind_cell(role.lost[kind]) for kind in kinds),
    ]
    if sees_holds:
        held = role.held or Tally()
        cells += [
            figure(held.ns),
            tag("td", share(held.ns, _observed_ns(recording)), class_="n"),
            tag("td", held.count, class_="n"),
        ]
    return tag("tr", tag("th", text(role.name), scope="row", class_="site"), *cells)


def _observed_ns(recording: Recording) -> int:
    totals: ProcessTotals = recording.observation.totals
    return totals.observed_ns or recording.duration_ns


def _kind_cell(tally: Tally) -> Markup:
    if tally == Tally():
        return Markup('<td class="n none">·</td>')
    return Markup('<td class="n">{}<br><span class="quiet">{}x</span></td>').format(
        time_lost(tally.ns), tally.count
    )


def _place(stack: Stack, sources: Mapping[tuple[str, int], str], names: SiteNames) -> Markup:
    if not stack.frames:
        return tag("span", IN_WORDS[stack.state], class_="quiet")
    lines = [tag("span", text(names.site(stack.frames[0])), class_="site holder")]
    innermost = stack.frames[0]
    line = innermost.first_line if innermost.line is None else innermost.line
    source = sources.get((innermost.file, line))
    if source is not None:
        lines.append(tag("code", text(source), class_="source"))
    outer = [frame for frame in stack.frames[1:] if origin_of(frame) is not Origin.BOOTSTRAP]
    if outer:
        called = joined((text(names.site(frame)) for frame in outer[:_OUTER_FRAMES]), " ← ")
        more = " ← …" if len(outer) > _OUTER_FRAMES else ""
        lines.append(tag("span", called, more, class_="outer"))
    return joined(lines)
