"""``gilscope snapshot``: what it asks for."""

import argparse
import sys
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from gilscope.commands import snapshot
from gilscope.errors import NoAnswer
from gilscope.web.client import Credentials


class _Asked:
    """What was asked for, and how."""

    url = ""
    credentials = Credentials()


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> _Asked:
    """Answer whatever is asked for with the same words."""
    found = _Asked()

    def fetch(url: str, credentials: Credentials) -> bytes:
        found.url, found.credentials = url, credentials
        return "a report ≈\n".encode()

    monkeypatch.setattr(snapshot, "fetch", fetch)
    return found


def _run(*words: str) -> int:
    parser = argparse.ArgumentParser()
    snapshot.prepare_parser(parser)
    return snapshot.run(parser.parse_args(words))


def _query(asked: _Asked) -> dict[str, str]:
    return {name: value for name, (value,) in parse_qs(urlsplit(asked.url).query).items()}


def test_without_arguments_it_asks_this_host(
    asked: _Asked, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    """
    For one screen about the last five minutes, which goes to standard output.
    """
    assert 0 == _run()
    assert asked.url.startswith("http://127.0.0.1:9845/report?")
    assert {"form": "text", "last": "300"} == _query(asked)
    assert "a report ≈\n".encode() == capsysbinary.readouterr().out


def test_the_name_of_the_file_says_its_form(asked: _Asked, tmp_path: Path) -> None:
    """
    What is in a file is whole; a form that only recordings have becomes text.
    """
    html, other = tmp_path / "now.html", tmp_path / "now.om"

    assert 0 == _run("-o", str(html), "--last", "1m30s", "-p", "7")
    assert {"form": "html", "last": "90", "pid": "7", "full": "1"} == _query(asked)
    assert "a report ≈\n" == html.read_text()
    assert 0 == _run("-o", str(other))
    assert "text" == _query(asked)["form"]
    assert 0 == _run("-o", str(other), "--format", "speedscope")
    assert "speedscope" == _query(asked)["form"]


def test_what_is_no_text_is_not_for_a_terminal(
    asked: _Asked, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Nothing is asked for then.
    """
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)

    assert 2 == _run("--format", "pprof")
    assert ("", "error: pprof is not for a terminal: give it a file with -o\n") == (
        asked.url,
        capsys.readouterr().err,
    )


@pytest.mark.usefixtures("capsysbinary")
def test_credentials_come_from_files(asked: _Asked, tmp_path: Path) -> None:
    """
    A password is the first line of its file, and on no command line.
    """
    password = tmp_path / "password"
    password.write_text("right\nsecond line\n")
    words = ("--user", "ops", "--password-file", str(password), "--cacert", "ca", "--cert", "own")

    assert 0 == _run("https://db7:9845/", *words, "--key", "key", "--color", "always", "--full")
    assert Credentials("ops", "right", Path("ca"), Path("own"), Path("key")) == asked.credentials
    assert asked.url.startswith("https://db7:9845/report?")
    assert {"form": "text", "last": "300", "full": "1", "colour": "1"} == _query(asked)
    with pytest.raises(NoAnswer, match="cannot read the password in /nowhere"):
        _run("--password-file", "/nowhere")


@pytest.mark.parametrize(
    "words",
    [
        ("127.0.0.1:9845",),
        ("file:///etc/passwd",),
        ("http://",),
        ("http://[",),
        ("--last", "11m"),
        ("--last", "0"),
        ("--format", "perfetto"),
        ("-o", "/nowhere/now.html"),
    ],
)
def test_what_makes_no_sense_is_refused(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    """
    Before anybody is asked.
    """
    with pytest.raises(SystemExit) as caught:
        _run(*words)

    assert 2 == caught.value.code
    assert "error: argument " in capsys.readouterr().err
