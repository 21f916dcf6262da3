"""Names by which a server on the loopback may be asked."""

import http.client
import threading

import pytest

from gilscope.web.health import Pulse
from gilscope.web.hosts import is_own_name
from gilscope.web.server import Server
from support.reports.scraped import Fixed


@pytest.mark.parametrize(
    "header",
    [
        None,
        "127.0.0.1:9845",
        "localhost",
        "LOCALHOST.:1",
        "[::1]:9845",
        "127.8.9.1",
        "me.localhost",
    ],
)
def test_names_of_the_loopback(header: str | None) -> None:
    """
    Its addresses in all forms, and what resolvers must not ask others for.
    """
    assert is_own_name(header, "127.0.0.1")


@pytest.mark.parametrize(
    "header",
    ["evil.example", "127.0.0.1.evil.example:9845", "", "192.0.2.1", "localhost.evil", "["],
)
def test_names_of_others(header: str) -> None:
    """
    A page of that name could have been given the address of the loopback.
    """
    assert not is_own_name(header, "127.0.0.1")


def test_own_name_is_what_was_listened_on() -> None:
    """
    A name from /etc/hosts that the user has given is as good.
    """
    assert is_own_name("Agent:9845", "agent")


@pytest.mark.parametrize(("listened", "status"), [("127.0.0.1", 421), ("0.0.0.0", 503)])  # noqa: S104 - for a moment
def test_pages_of_others_get_nothing(listened: str, status: int) -> None:
    """
    On the loopback 421 in words; elsewhere nobody knows all names, and any is answered.
    """
    server = Server((listened, 0))
    thread = threading.Thread(target=server.answer)
    thread.start()
    port = int(server.url.rstrip("/").rpartition(":")[2])
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("GET", "/metrics", headers={"Host": "evil.example"})
    answer = connection.getresponse()

    assert status == answer.status
    assert (b"answers to no other name" in answer.read()) == (status == 421)
    server.stop()
    thread.join()
    server.close()


def test_health_names_the_loop_that_hangs() -> None:
    """
    503 while it starts, 200 when all loops iterate, and 503 in words when one does not.
    """
    server = Server(("127.0.0.1", 0))
    thread = threading.Thread(target=server.answer)
    thread.start()
    port = int(server.url.rstrip("/").rpartition(":")[2])

    def health() -> tuple[int, str]:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        connection.request("GET", "/healthz")
        answer = connection.getresponse()
        return answer.status, answer.read().decode()

    starting = health()
    search = Pulse("looks for processes", stale_s=3600)
    server.show(Fixed([]).source, search)
    well = health()
    search._stale_s = 0  # noqa: SLF001 - what is otherwise waited for
    hanging = health()
    server.stop()
    thread.join()
    server.close()

    assert (503, "starting") == (starting[0], starting[1][:8])
    assert (200, "ok\n") == well
    assert (503, "the loop that looks for processes has stopped\n") == hanging
