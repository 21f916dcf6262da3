"""WORDS: what users, and readers of the source, are told is in the field's terms."""

import io
import re
import tokenize
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from support.docs.pages import ROOT

_GAP = r"""[\s#/*"]+"""
"""Between two words: also the end of a line, the mark of a comment, and the ends of two strings."""

_CODE = "\0"
"""In the place of what is neither a comment nor a string: no part of a word, and no gap."""

_FOLDERS = ("agent/gilscope", "agent/native", "dashboards", "deploy", "docs", "probes")
_ENDINGS = {".c", ".css", ".h", ".html", ".js", ".json", ".md", ".py", ".service", ".sh", ".txt"}
_ENDINGS |= {".tpl", ".yaml", ".yml"}
_PAGES = ("CHANGELOG.md", "CONTRIBUTING.md", "Makefile", "README.md", "SECURITY.md")


@dataclass(frozen=True, slots=True)
class _Word:
    pattern: str
    """A space stands for whatever is between two words."""
    better: str
    allowed: Mapping[str, str] = field(default_factory=dict)
    """By the file in which it may stand: why."""

    def found_in(self, text: str) -> Iterator[re.Match[str]]:
        """Yield where it is in *text*."""
        pattern = self.pattern.replace(" ", _GAP)
        return re.finditer(rf"(?i)(?<!\w)(?:{pattern})(?!\w)", text)


_ALIAS = "the key by its old name"
_LABEL = "the value of a label"

_WORDS = (
    _Word("dear(?:er|est)?", "costly, costlier, costliest"),
    _Word("purses?", "token bucket"),
    _Word(
        "crowd(?:s|ed)?",
        "overflow bucket, other",
        {
            "agent/gilscope/exporter/stm_log.py": _LABEL,
            "agent/gilscope/stm_log/follow/follower.py": _LABEL,
            "docs/man/gilscope-serve.8.md": _LABEL,
        },
    ),
    _Word("strangers?", "unknown user, untracked thread, other process"),
    _Word("heed(?:s|ed|ing)?", "apply, answer"),
    _Word("forg[ai]ve[sn]?|forgiving", "reset"),
    _Word("bur(?:y|ies|ied|ying)", "evict"),
    _Word(
        "culprits?",
        "holder that is slow to drop the GIL",
        {
            "CHANGELOG.md": _ALIAS,
        },
    ),
    _Word("by lot", "at random"),
    _Word("mend(?:s|ed|ing)?", "fix"),
    _Word("let(?:s|ting)?(?: it| them| the GIL| the lock)? go(?! on)", "release, drop, close"),
    _Word("made to yield", "preempted"),
    _Word("(?:take|takes|taking|took|taken)(?: of)? the GIL", "acquire"),
    _Word("the GIL(?: is| was| as)? taken", "held"),
    _Word("takes? (?:and|or) (?:a )?releases?", "acquire"),
    _Word("as far as looks", "(sampled)"),
    _Word("in vain", "unanswered (a request), wasted (work)"),
    _Word(
        "(?:a|the|each|every|another|no|one|two|ten|hundred|few|fewer|fewest|all|of|from|between"
        "|first|last|next|later|some|more) looks?",
        "sample, snapshot, check",
    ),
    _Word('""So (?:long|often|many)', "How long, how often, how many, or Timeout for"),
    _Word("(?:come|comes|came) round", "finish an iteration"),
    _Word("fares?", "health"),
    _Word("brings? (?:itself|themselves|the page) up to date", "refresh"),
    _Word("wear|wears|wore|worn", "load, overload"),
    _Word("manners", "leave it out"),
    _Word("put(?:s|ting)? down to", "attribute to"),
    _Word("(?:go|goes|going|went) on", "continue; in flight"),
    _Word("(?:is|are|was|were|been) met", "hit, seen"),
    _Word("nobody asks", "no scrape, no request"),
    _Word("who it is", "which code"),
)


def _prose(path: Path) -> str:
    """Return the text of *path*; of Python comments and strings alone, where they stand."""
    text = path.read_text(encoding="utf-8", errors="replace")
    if path.suffix != ".py":
        return text
    source = text.splitlines()
    lines = [re.sub(r"\S", _CODE, line) for line in source]
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type != tokenize.COMMENT and "STRING" not in tokenize.tok_name[token.type]:
            continue
        for number in range(token.start[0], token.end[0] + 1):
            begin = token.start[1] if number == token.start[0] else 0
            end = token.end[1] if number == token.end[0] else len(source[number - 1])
            old = lines[number - 1]
            lines[number - 1] = old[:begin] + source[number - 1][begin:end] + old[end:]
    return "\n".join(lines)


def _files() -> Iterator[Path]:
    yield from (ROOT / page for page in _PAGES)
    for folder in _FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            parts = path.relative_to(ROOT).parts
            if path.suffix in _ENDINGS and path.is_file() and "__pycache__" not in parts:
                yield path


def _findings(text: str, name: str) -> list[str]:
    return [
        f"{name}:{text.count(chr(10), 0, match.start()) + 1}: {match[0]!r}; better: {word.better}"
        for word in _WORDS
        if name not in word.allowed
        for match in word.found_in(text)
    ]


def test_words_are_those_of_the_field() -> None:
    """
    None of the words that a reader would have to learn first.
    """
    findings = [
        finding
        for path in _files()
        for finding in _findings(_prose(path), path.relative_to(ROOT).as_posix())
    ]

    assert not findings, "\n".join(findings)


@pytest.mark.parametrize("word", _WORDS, ids=lambda word: word.pattern)
def test_exceptions_are_needed(word: _Word) -> None:
    """
    A file that may have a word has it.
    """
    for name in word.allowed:
        assert list(word.found_in(_prose(ROOT / name))), name


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("what\nmends it", 2),
        ("# until the holder lets\n# go of it", 1),
        ('"asks it in "\n"vain"', 1),
        ("between two looks", 1),
        ("the Dearest pair", 1),
    ],
)
def test_a_word_is_found(text: str, line: int) -> None:
    """
    Also at the end of a line, in a comment, and in two strings.
    """
    [finding] = _findings(text, "page.md")

    assert finding.startswith(f"page.md:{line}: ")


@pytest.mark.parametrize(
    "text", ["recommended", "lets them go on", "it looks for files", "QUOTA_CULPRITS", "overlooks"]
)
def test_other_words_are_not(text: str) -> None:
    """
    Parts of words, names in code, and the same words with another meaning.
    """
    assert not [finding for finding in _findings(text, "page.md") if "continue" not in finding]
