"""A moment as a picture: rows of marks on one axis of time."""

from collections.abc import Iterable, Iterator, Sequence

from markupsafe import Markup

from gilscope.reports.html.markup import duration, joined, text
from gilscope.values import dataclass

__all__ = ["HEIGHT", "Mark", "Strip", "key"]

HEIGHT = 22
"""Of a row."""
_NARROW = 0.0004
"""Of the width: two marks that are no farther apart than that are one."""
_LEAST_WIDTH = 0.15
"""In percent: what is shorter can still be seen."""
_STEPS = 4


@dataclass(frozen=True, slots=True)
class Mark:
    """A stretch of a row."""

    began_ns: int
    ended_ns: int
    look: str
    """Its class."""
    words: str


@dataclass(frozen=True, slots=True)
class Strip:
    """The time that is drawn, from its beginning to its end."""

    began_ns: int
    ended_ns: int

    def inside_ns(self, mark: Mark) -> int:
        """Return how much of *mark* lies in it."""
        return max(0, min(mark.ended_ns, self.ended_ns) - max(mark.began_ns, self.began_ns))

    def shows(self, mark: Mark) -> bool:
        """Return whether any of *mark* lies in it, which may be an instant."""
        return bool(self.inside_ns(mark)) or (
            self.began_ns <= mark.began_ns == mark.ended_ns < self.ended_ns
        )

    def row(self, shapes: Sequence[Markup], summary: str) -> Markup:
        """Return a cell with *shapes*; *summary* says the same to who does not see them."""
        ground = Markup('<rect class="row" width="100%" height="{}"/>').format(HEIGHT)
        return Markup(
            '<td><svg width="100%" height="{}" role="img" aria-label="{}">{}</svg></td>'
        ).format(HEIGHT, summary, joined([ground, *shapes]))

    def rect(self, mark: Mark, y: int, height: int) -> Markup:
        """Return *mark* as a box, with its words."""
        whole_ns = max(1, self.ended_ns - self.began_ns)
        return Markup(
            '<rect class="{}" x="{}" y="{}" width="{:.3f}%" height="{}"><title>{}</title></rect>'
        ).format(
            mark.look,
            self._at(mark.began_ns),
            y,
            max(_LEAST_WIDTH, 100 * self.inside_ns(mark) / whole_ns),
            height,
            text(mark.words),
        )

    def stripes(self, mark: Mark) -> Markup:
        """Return the stripes of *mark* in the middle of its row."""
        # A pattern would need an id, of which there is one on a page for each process.
        return Markup(
            '<line class="stripes" x1="{}" x2="{}" y1="14" y2="14" stroke-dasharray="1.5 3.5" '
            'pointer-events="none"/>'
        ).format(self._at(mark.began_ns), self._at(mark.ended_ns))

    def line(self, mark: Mark) -> Markup:
        """Return the beginning of *mark* as a line across its row."""
        return Markup(
            '<line class="{0}" x1="{1}" x2="{1}" y1="1" y2="21"><title>{2}</title></line>'
        ).format(mark.look, self._at(mark.began_ns), mark.words)

    def merged(self, marks: Iterable[Mark]) -> Iterator[Mark]:
        """Yield *marks* with those that cannot be told apart in one."""
        close_ns = _NARROW * (self.ended_ns - self.began_ns)
        last: Mark | None = None
        for mark in sorted(marks, key=lambda mark: mark.began_ns):
            is_small = mark.ended_ns - mark.began_ns < close_ns
            if (
                last
                and is_small
                and mark.look == last.look
                and mark.began_ns - last.ended_ns < close_ns
            ):
                ended_ns = max(last.ended_ns, mark.ended_ns)
                last = Mark(last.began_ns, ended_ns, last.look, last.words)
                continue
            if last:
                yield last
            last = mark
        if last:
            yield last

    def axis(self) -> Markup:
        """Return a cell with the time since the beginning."""
        whole_ns = self.ended_ns - self.began_ns
        labels = []
        for step in range(_STEPS + 1):
            anchor = "start" if step == 0 else "end" if step == _STEPS else "middle"
            labels.append(
                Markup('<text class="axis" x="{}%" y="13" text-anchor="{}">{}</text>').format(
                    100 * step // _STEPS, anchor, duration(whole_ns * step // _STEPS) if step else 0
                )
            )
        return Markup('<td><svg width="100%" height="18">{}</svg></td>').format(joined(labels))

    def _at(self, time_ns: int) -> str:
        """Return where *time_ns* is, in percent of the width, as far as it is in the picture."""
        whole_ns = max(1, self.ended_ns - self.began_ns)
        return f"{100 * min(1, max(0, (time_ns - self.began_ns) / whole_ns)):.3f}%"


def key(samples: Iterable[tuple[Markup, str]]) -> Markup:
    """Return a list of what looks how: samples, each with its words."""
    entries = (
        Markup('<li><svg width="28" height="14" aria-hidden="true">{}</svg>{}</li>').format(*each)
        for each in samples
    )
    return Markup('<ul class="key">{}</ul>').format(joined(entries))
