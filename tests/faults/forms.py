"""Every form of a report, read by what reads it."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path

from prometheus_client.openmetrics.parser import (
    text_string_to_metric_families as openmetrics_families,
)
from prometheus_client.parser import text_string_to_metric_families

from faults.plain_words import not_plain
from faults.registry import Failed, Verdict
from support.reports import pprof

__all__ = ["FORMS", "arguments_of", "check_forms", "check_page"]

FORMS = (
    *("text", "json", "html", "markdown", "collapsed", "speedscope"),
    *("pprof", "otlp-profiles", "perfetto", "openmetrics", "prometheus"),
)
_STATEMENT = re.compile(r"on\w+$")


class _Tags(HTMLParser):
    """Collects the elements of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.handlers: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element and whether it has a handler of events."""
        self.tags.add(tag)
        self.handlers |= {name for name, _ in attrs if _STATEMENT.match(name)}


def arguments_of(folder: Path) -> list[str]:
    """Return what has `record` write every form into *folder*."""
    return [word for form in FORMS for word in ("--format", f"{form}={folder / form}")]


def check_forms(folder: Path) -> None:
    """Raise Failed unless every form in *folder* can be read, and holds nothing raw."""
    for form in FORMS:
        content = (folder / form).read_bytes()
        try:
            text = _words(content) if form == "pprof" else content.decode()
        except UnicodeDecodeError as error:
            raise Failed(Verdict.UNCLEAR_MESSAGE, f"{form} is no text: {error}") from error
        found = not_plain(text)
        if found:
            raise Failed(Verdict.UNCLEAR_MESSAGE, f"{form}: {found}")
        try:
            _read(form, text)
        except (ValueError, KeyError) as error:
            raise Failed(Verdict.WRONG_NUMBER, f"{form} cannot be read: {error!r}") from error


def check_page(text: str, where: str) -> None:
    """Raise Failed if a page of ours has elements that no page of ours has."""
    parser = _Tags()
    parser.feed(text)
    foreign = parser.tags & {"img", "iframe", "object", "embed", "evil", "base"}
    if foreign or parser.handlers:
        raise Failed(Verdict.WRONG_NUMBER, f"{where} has {foreign or parser.handlers}")


def _words(content: bytes) -> str:
    """Return all names in a profile of pprof, a line each."""
    profile = pprof.read(content)
    names = {name for each in profile.samples for place in each.stack for name in place[:2]}
    names.update(label for each in profile.samples for label in each.labels.values())
    return "\n".join([*sorted(names), *profile.programs, *profile.comments])


def _read(form: str, text: str) -> None:
    if form in ("json", "speedscope", "perfetto", "otlp-profiles"):
        json.loads(text)
    elif form == "html":
        check_page(text, form)
    elif form == "openmetrics":
        list(openmetrics_families(_last_moment(text)))  # type: ignore[no-untyped-call]
    elif form == "prometheus":
        list(text_string_to_metric_families(text))
    elif form == "collapsed":
        # A stack and a number, a line each.
        for line in text.split("\n")[:-1]:
            int(line.rpartition(" ")[2])


def _last_moment(text: str) -> str:
    """Return what *text* says of its last moment: the parser knows buckets of a single one."""
    lines = text.split("\n")[:-1]
    last = max((line.rpartition(" ")[2] for line in lines if not line.startswith("#")), key=float)
    kept = [line for line in lines if line.startswith("#") or line.endswith(f" {last}")]
    return "\n".join([*kept, ""])
