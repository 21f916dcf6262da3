"""Basic authentication."""

import base64
import threading
import time

import bcrypt
import pytest

from gilscope.web.config.passwords import Passwords
from gilscope.web.guard import Busy

_CHECK = bcrypt.checkpw
_LONG = "ä" * 40
"""80 bytes, of which bcrypt looks at 72."""


def _hash(password: str, cost: int = 4) -> str:
    return bcrypt.hashpw(password.encode()[:72], bcrypt.gensalt(cost)).decode()


def _header(name: str, password: str) -> str:
    return f"Basic {base64.b64encode(f'{name}:{password}'.encode()).decode()}"


def _users() -> Passwords:
    return Passwords(
        {"anna": _hash("a:b"), "jörg": _hash("ü").replace("$2b$", "$2y$"), "l": _hash(_LONG)}
    )


@pytest.mark.parametrize(
    "authorization",
    [
        _header("anna", "a:b"),
        _header("anna", "a:b").replace("Basic ", "basic   "),
        _header("jörg", "ü"),
        _header("l", _LONG),
    ],
)
def test_users_are_let_in(authorization: str) -> None:
    """
    By UTF-8, with colons in passwords, and again when they come back.
    """
    users = _users()

    assert [True, True] == [users.admits(authorization), users.admits(authorization)]


@pytest.mark.parametrize(
    "authorization",
    [
        "",
        "Basic",
        "Basic !!!",
        "Basic anna:a:b",
        _header("anna", "a"),
        _header("anna", ""),
        _header("anna", "a:b\0"),
        _header("bert", "a:b"),
        _header("", ""),
        _header("jörg", "a:b"),
        _header("anna", "a:b").replace("Basic", "Bearer"),
        f"Basic {base64.b64encode(b'anna').decode()}",
        f"Basic {base64.b64encode(bytes([255, 58, 255])).decode()}",
    ],
)
def test_others_are_not(authorization: str) -> None:
    """
    Wrong name, wrong password, one of another, another scheme, and what is no header.
    """
    users = _users()

    assert [False, False] == [users.admits(authorization), users.admits(authorization)]


@pytest.fixture
def checks(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The hashes that passwords were held against."""
    seen = []

    def noting(password: bytes, hashed: bytes) -> bool:
        seen.append(hashed)
        return _CHECK(password, hashed)

    monkeypatch.setattr(bcrypt, "checkpw", noting)
    return seen


def test_a_password_is_checked_once(checks: list[bytes]) -> None:
    """
    It is slow on purpose; a scraper that comes every few seconds is known, right or wrong.
    """
    users = _users()
    for _ in range(3):
        assert users.admits(_header("anna", "a:b"))
        assert not users.admits(_header("anna", "x"))

    assert 2 == len(checks)


def test_an_unknown_name_takes_as_long_as_a_known_one(checks: list[bytes]) -> None:
    """
    It is held against the slowest hash that there is, even where the password would be right.
    """
    slow = _hash("right", 5)
    users = Passwords({"fast": _hash("x"), "slow": slow})

    assert not users.admits(_header("nobody", "right"))
    assert [slow.encode()] == checks


def test_guesses_are_forgotten_after_a_while(checks: list[bytes]) -> None:
    """
    A hundred wrong ones are remembered, so that guessing fills no memory.
    """
    users = _users()
    for number in range(101):
        users.admits(_header("anna", str(number)))
    del checks[:]

    users.admits(_header("anna", "100"))
    users.admits(_header("anna", "1"))
    assert [] == checks
    users.admits(_header("anna", "0"))
    assert 1 == len(checks)


def test_guesses_do_not_hold_up_who_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    While eight guesses are in line, a known user is let in, and a ninth is told to come later.
    """
    users = _users()
    assert users.admits(_header("anna", "a:b"))
    going, go_on = threading.Semaphore(0), threading.Event()

    def stuck(_password: bytes, _hashed: bytes) -> bool:
        going.release()
        assert go_on.wait(30)
        return False

    monkeypatch.setattr(bcrypt, "checkpw", stuck)
    threads = [_thread(users, _header("anna", f"guess {number}")) for number in range(8)]
    assert going.acquire(timeout=30)
    while users._queue._value:  # noqa: SLF001 - the handshake: all eight have got in line
        time.sleep(0.001)

    assert users.admits(_header("anna", "a:b"))
    with pytest.raises(Busy):
        users.admits(_header("anna", "ninth"))
    go_on.set()
    for thread in threads:
        thread.join()


def _thread(users: Passwords, guess: str) -> threading.Thread:
    thread = threading.Thread(target=users.admits, args=(guess,))
    thread.start()
    return thread


def test_each_guess_takes_the_same_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    The rounds of all checks add up to those of the slowest hash, whoever is asked for.
    """
    passwords = Passwords({"fast": _hash("a", 4), "slow": _hash("b", 7)})
    rounds: list[int] = []
    check, make = bcrypt.checkpw, bcrypt.hashpw

    def checked(password: bytes, hashed: bytes) -> bool:
        rounds.append(2 ** int(hashed[4:6]))
        return check(password, hashed)

    def made(password: bytes, salt: bytes) -> bytes:
        rounds.append(2 ** int(salt[4:6]))
        return make(password, salt)

    monkeypatch.setattr(bcrypt, "checkpw", checked)
    monkeypatch.setattr(bcrypt, "hashpw", made)
    sums = []
    for name in ("fast", "slow", "nobody"):
        rounds.clear()
        assert not passwords.admits(_header(name, "guess"))
        sums.append(sum(rounds))

    assert [2**7] * 3 == sums
