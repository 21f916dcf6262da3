"""Asking a running agent, with what it may want to see."""

from pathlib import Path

import bcrypt
import pytest

from gilscope.errors import NoAnswer
from gilscope.web.client import Credentials, fetch
from support.certificates import Authority
from support.ports import free_port
from support.web.asking import TLS
from unit.web.conftest import Serve

_USERS = f"basic_auth_users:\n  ops: {bcrypt.hashpw(b'right', bcrypt.gensalt(4)).decode()}\n"


def test_answer_of_an_open_server_is_fetched(serve: Serve) -> None:
    """
    As it is.
    """
    assert b"ok\n" == fetch(f"{serve('')}healthz", Credentials())


def test_password_is_shown(serve: Serve) -> None:
    """
    A wrong one is refused, and so is none; the error says what to do.
    """
    url = f"{serve(_USERS)}healthz"

    assert b"ok\n" == fetch(url, Credentials("ops", "right"))
    for wrong in (Credentials(), Credentials("ops", "wrong")):
        with pytest.raises(NoAnswer, match="answers 401: name and password") as caught:
            fetch(url, wrong)
        assert "--password-file" in caught.value.remedy


def test_certificates_are_checked_and_shown(serve: Serve, authority: Authority) -> None:
    """
    The server's by who vouches for it, one's own where it is asked for.
    """
    known = (
        f"{TLS}  client_auth_type: RequireAndVerifyClientCert\n  client_ca_file: authority.crt\n"
    )
    url = f"{serve(known)}healthz"
    own = authority.folder / "authority-client.crt"
    key = own.with_suffix(".key")

    assert b"ok\n" == fetch(url, Credentials("", "", authority.cert, own, key))
    with pytest.raises(NoAnswer, match="CERTIFICATE_VERIFY_FAILED"):
        fetch(url, Credentials())
    with pytest.raises(NoAnswer, match="does not answer: "):
        fetch(url, Credentials("", "", authority.cert))


def test_what_is_not_there_does_not_answer(serve: Serve) -> None:
    """
    Nobody listens, there is no such page, or a file is missing.
    """
    with pytest.raises(NoAnswer, match="Connection refused"):
        fetch(f"http://127.0.0.1:{free_port()}/report", Credentials())
    with pytest.raises(NoAnswer, match="answers 404: no such page"):
        fetch(f"{serve('')}nothing", Credentials())
    with pytest.raises(NoAnswer, match="No such file"):
        fetch(serve(""), Credentials("", "", Path("/nowhere.pem")))


def test_proxies_are_not_asked(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    What is asked runs on this host as a rule.
    """
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{free_port()}")

    assert b"ok\n" == fetch(f"{serve('')}healthz", Credentials())
