"""An agent that serves as a web configuration file says, and certificates for it."""

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from gilscope.web.config.access import Access
from gilscope.web.health import Pulse
from gilscope.web.server import Server
from support.certificates import Authority
from support.recordings.gil import full_mode
from support.reports.scraped import Fixed

Serve = Callable[[str], str]


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """Have a server's certificate, and those of clients that it knows and does not know."""
    folder = tmp_path_factory.mktemp("certificates")
    made = Authority.made(folder)
    made.pair("server", "DNS:localhost", "IP:127.0.0.1")
    made.pair("client", "DNS:scraper.example", "IP:2001:db8::1")
    made.pair("nameless")
    stranger = Authority.made(folder, "stranger")
    stranger.pair("client", "DNS:scraper.example")
    return made


@pytest.fixture
def config(authority: Authority) -> Iterator[Path]:
    """Return where the file is to be, beside the certificates."""
    path = authority.folder / "web.yml"
    yield path
    path.unlink(missing_ok=True)


@pytest.fixture
def serve(config: Path) -> Iterator[Serve]:
    """Serve as a text says, and return the address."""
    with ExitStack() as stack:

        def begin(text: str) -> str:
            config.write_text(text)
            return stack.enter_context(_served(Access(str(config))))

        yield begin


@contextmanager
def _served(access: Access) -> Iterator[str]:
    server = Server(("127.0.0.1", 0), access)
    thread = threading.Thread(
        target=server.run, args=(Fixed([full_mode().observation]).source, Pulse())
    )
    thread.start()
    try:
        yield server.url
    finally:
        server.stop()
        thread.join()
        server.close()
