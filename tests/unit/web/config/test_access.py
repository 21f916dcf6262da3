"""What holds while the files change."""

import base64
import logging
import os
import shutil
from pathlib import Path

import bcrypt
import pytest

from gilscope.errors import InvalidWebConfig
from gilscope.web.config.access import Access
from gilscope.web.config.passwords import Passwords
from gilscope.web.guard import Busy
from support.certificates import Authority
from support.web.asking import TLS, ask, known
from unit.web.conftest import Serve

_HASH = bcrypt.hashpw(b"first", bcrypt.gensalt(4)).decode()
_OTHER_HASH = bcrypt.hashpw(b"second", bcrypt.gensalt(4)).decode()
_USERS = f"basic_auth_users:\n  u: {_HASH}\n"


def _replaced(path: Path, text: str) -> None:
    """Put *text* into the place of the file *path* at once, as those do who take care."""
    fresh = path.with_suffix(".new")
    fresh.write_text(text)
    fresh.replace(path)


def test_passwords_are_asked_for_on_every_path(serve: Serve) -> None:
    """
    Also for what is not there; the answer says how to prove oneself.
    """
    url = serve(_USERS)

    for path in ("", "metrics", "healthz", "nothing"):
        refused = ask(url, path=path)
        assert 401 == refused.status
        assert '\nWWW-Authenticate: Basic realm="gilscope", charset="UTF-8"\n' in refused.text
    assert 401 == ask(url, "--user", "u:second").status
    assert 401 == ask(url, "--user", "v:first").status
    assert 200 == ask(url, "--user", "u:first").status
    assert 404 == ask(url, "--user", "u:first", path="nothing").status


def test_headers_are_sent_with_each_answer(serve: Serve) -> None:
    """
    Also with refusals; one that gilscope sends itself is replaced.
    """
    policy = "Content-Security-Policy: default-src data"
    url = serve(
        f"http_server_config:\n  headers:\n    X-Frame-Options: deny\n    {policy}\n{_USERS}"
    )

    for answer in (ask(url), ask(url, "--user", "u:first", path=""), ask(url, "--request", "PUT")):
        assert 1 == answer.text.count("\nX-Frame-Options: deny\n")
        assert 1 == answer.text.count(f"\n{policy}\n")
        assert 1 == answer.text.count("Content-Security-Policy")


def test_a_certificate_is_renewed_without_a_restart(
    serve: Serve, authority: Authority, config: Path
) -> None:
    """
    The next connection gets the new one. While the new key is missing, the old pair goes on.
    """
    cert, key = config.with_name("own.crt"), config.with_name("own.key")
    fresh = Authority.made(config.parent, "fresh").pair("server", "IP:127.0.0.1")
    shutil.copy(config.with_name("authority-server.crt"), cert)
    shutil.copy(config.with_name("authority-server.key"), key)
    url = serve(TLS.replace("authority-server", "own"))
    new = ("--cacert", str(config.with_name("fresh.crt")))

    assert [200, 0] == [ask(url, *known(authority)).status, ask(url, *new).status]
    _replaced(cert, fresh.cert.read_text())
    assert [200, 0] == [ask(url, *known(authority)).status, ask(url, *new).status]
    _replaced(key, fresh.key.read_text())
    assert [0, 200] == [ask(url, *known(authority)).status, ask(url, *new).status]


def test_users_change_without_a_restart(serve: Serve, config: Path) -> None:
    """
    A new password holds, and the old one does not, though it was remembered.
    """
    url = serve(_USERS)
    assert 200 == ask(url, "--user", "u:first").status

    _replaced(config, _USERS.replace(_HASH, _OTHER_HASH))

    assert 401 == ask(url, "--user", "u:first").status
    assert 200 == ask(url, "--user", "u:second").status


@pytest.mark.parametrize("text", ["", "nonsense", "basic_auth_users:", None])
def test_a_file_that_loses_its_protection_opens_nothing(
    serve: Serve, config: Path, caplog: pytest.LogCaptureFixture, text: str | None
) -> None:
    """
    It may be half written, or gone for a moment. The log says once that it is not used.
    """
    url = serve(_USERS)
    if text is None:
        config.unlink()
    else:
        _replaced(config, text)
    with caplog.at_level(logging.INFO):
        assert [401, 401] == [ask(url).status, ask(url).status]

        assert 200 == ask(url, "--user", "u:first").status
    (said,) = [record.getMessage() for record in caplog.records]
    assert said.endswith("The previous settings stay in effect.")


def test_who_cannot_be_looked_at_now_is_told_to_come_later(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    A right password behind too many guesses is not called wrong.
    """
    monkeypatch.setattr(Passwords, "admits", _too_many)
    answered = ask(serve(_USERS), "--user", "u:first")

    assert 503 == answered.status
    assert "Retry-After: 1\n" in answered.text
    assert "WWW-Authenticate" not in answered.text


def _too_many(_passwords: Passwords, _authorization: str) -> bool:
    raise Busy


def test_who_was_let_in_is_still_known_when_something_else_changes(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    A renewed certificate does not make all users be checked again.
    """
    config.write_text(_USERS)
    access = Access(str(config))
    header = f"Basic {base64.b64encode(b'u:first').decode()}"
    assert access.rules().admits(header)
    monkeypatch.setattr(bcrypt, "checkpw", None)

    os.utime(config, ns=(1, 1))

    assert access.rules().admits(header)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, r"^cannot read .*/web\.yml: No such file or directory$"),
        (b"\xff", r"^.*/web\.yml is no UTF-8: "),
        (b"a: 1", r"^.*/web\.yml, line 1: a: there is no such key"),
    ],
)
def test_a_file_that_is_no_good_is_an_error_at_the_start(
    config: Path, content: bytes | None, words: str
) -> None:
    """
    Nothing is served by half a configuration.
    """
    if content is not None:
        config.write_bytes(content)

    with pytest.raises(InvalidWebConfig, match=words):
        Access(str(config))
