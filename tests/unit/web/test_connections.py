"""Clients that are slow, silent or many."""

import contextlib
import socket
import ssl
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from gilscope.web.connections import Connections
from support.certificates import Authority
from support.web.asking import TLS, ask, known
from unit.web.conftest import Serve

_MOST = 32


def _connected(url: str) -> socket.socket:
    address = urlsplit(url)
    assert address.hostname is not None
    # Less than the ten seconds after which silent ones are ended in any case.
    return socket.create_connection((address.hostname, address.port or 0), timeout=5)


@pytest.mark.parametrize("first", [b"", b"\x16", b"\x16\x03\x01\x02\x00\x01\x00"])
def test_a_handshake_that_does_not_go_on_holds_up_nobody(
    serve: Serve, authority: Authority, first: bytes
) -> None:
    """
    Others are served while a client has said nothing, or the beginning of a greeting.
    """
    url = serve(TLS)
    with contextlib.ExitStack() as stack:
        for _ in range(3):
            stack.enter_context(_connected(url)).sendall(first)

        assert 200 == ask(url, *known(authority)).status


@pytest.mark.parametrize("text", ["", TLS])
def test_who_keeps_connections_loses_the_oldest(
    serve: Serve, authority: Authority, text: str
) -> None:
    """
    The one beyond the 32nd is answered, and the first is ended.
    """
    url = serve(text)
    with contextlib.ExitStack() as stack:
        kept = [stack.enter_context(_connected(url)) for _ in range(_MOST)]

        assert 200 == ask(url, *known(authority)).status
        assert b"" == kept[0].recv(1)
        kept[-1].setblocking(False)
        with pytest.raises(BlockingIOError):
            kept[-1].recv(1)


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Have both ends of a connection."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.setblocking(False)
        yield ours, theirs


def test_a_connection_ends_after_its_time(ends: tuple[socket.socket, socket.socket]) -> None:
    """
    Whatever its client does meanwhile; before, nothing happens to it.
    """
    ours, theirs = ends
    patient, strict = Connections(longest_s=60), Connections(longest_s=0)
    assert patient.add(ours)
    patient.end_overdue()
    with pytest.raises(BlockingIOError):
        theirs.recv(1)

    assert strict.add(ours)
    strict.end_overdue()

    assert b"" == theirs.recv(1)


def test_what_is_ended_and_stays_busy_is_not_added_to_for_ever() -> None:
    """
    Twice as many as may be are there, then new ones are turned away until some have gone.
    """
    connections = Connections(most=2)
    with contextlib.ExitStack() as stack:
        made = [stack.enter_context(end) for _ in range(3) for end in socket.socketpair()]

        assert [True] * 4 + [False] == [connections.add(each) for each in made[:5]]
        connections.remove(made[0])
        assert connections.add(made[5])


def test_an_encrypted_connection_is_ended_too(serve: Serve, authority: Authority) -> None:
    """
    After its handshake it is another object, which is the one to be ended.
    """
    url = serve(TLS)
    context = ssl.create_default_context(cafile=authority.cert)
    with contextlib.ExitStack() as stack:
        oldest = context.wrap_socket(_connected(url), server_hostname="127.0.0.1")
        stack.enter_context(oldest)
        for _ in range(_MOST):
            stack.enter_context(_connected(url))
        assert 200 == ask(url, *known(authority)).status

        with contextlib.suppress(ssl.SSLEOFError, ConnectionResetError):
            assert b"" == oldest.recv(1)


def test_sessions_of_clients_do_not_pile_up(serve: Serve, authority: Authority) -> None:
    """
    No ticket is given, for nobody comes back with one.
    """
    url = serve(TLS)
    context = ssl.create_default_context(cafile=authority.cert)
    with context.wrap_socket(_connected(url), server_hostname="127.0.0.1") as client:
        client.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")

        # Tickets come behind the handshake, and are there when something else has been read.
        assert client.recv(100).startswith(b"HTTP/1.0 200 ")
        assert client.session is not None
        assert not client.session.has_ticket
