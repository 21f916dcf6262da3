"""Drives a headless Chromium through its DevTools protocol, over a pair of pipes."""

import base64
import contextlib
import fcntl
import json
import os
import select
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

__all__ = ["Page", "browser", "opened"]

_TIMEOUT_S = 60
_KEYS = {
    "Enter": "\r",
    "Escape": "",
    "Tab": "",
    " ": " ",
    **dict.fromkeys(("ArrowDown", "ArrowUp", "ArrowRight"), ""),
}
_ARGUMENTS = (
    "--headless",
    "--no-sandbox",  # it refuses to start as root otherwise
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)
# By Chromium's contract.
_COMMANDS_FD, _ANSWERS_FD = 3, 4
_BEYOND_BOTH = 10


class _Pipe:
    """Commands and answers, each ended by a zero byte."""

    def __init__(self, commands: int, answers: int) -> None:
        self._commands, self._answers = commands, answers
        self._unread = b""
        self._number = 0
        self.events: list[dict[str, Any]] = []

    def call(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        """Return the result of *method*; raises RuntimeError if the browser refuses it."""
        self._number += 1
        command = {"id": self._number, "method": method, "params": parameters}
        if session is not None:
            command["sessionId"] = session
        os.write(self._commands, json.dumps(command).encode() + b"\0")
        while True:
            message = self._next()
            if message.get("id") != self._number:
                self.events.append(message)
                continue
            if "error" in message:
                raise RuntimeError(f"{method}: {message['error']['message']}")
            result: dict[str, Any] = message["result"]
            return result

    def wait_for(self, method: str) -> None:
        """Return when the event *method* has come since the list of events was last emptied."""
        while not any(event["method"] == method for event in self.events):
            self.events.append(self._next())

    def _next(self) -> dict[str, Any]:
        deadline = time.monotonic() + _TIMEOUT_S
        while b"\0" not in self._unread:
            ready, _, _ = select.select(
                [self._answers], [], [], max(0, deadline - time.monotonic())
            )
            if not ready:
                raise TimeoutError(f"Chromium has said nothing for {_TIMEOUT_S} s")
            part = os.read(self._answers, 1 << 20)
            if not part:
                raise EOFError("Chromium has ended")
            self._unread += part
        message, _, self._unread = self._unread.partition(b"\0")
        decoded: dict[str, Any] = json.loads(message)
        return decoded


class Page:
    """One tab."""

    def __init__(self, pipe: _Pipe, session: str) -> None:
        self._pipe, self._session = pipe, session
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._call(f"{domain}.enable")

    def open(self, place: Path | str) -> None:
        """Load a file, or what is at an address, and return when it and its script are done."""
        self._pipe.events.clear()
        self._call("Page.navigate", url=place if isinstance(place, str) else place.as_uri())
        self._pipe.wait_for("Page.loadEventFired")

    def evaluate(self, expression: str) -> Any:
        """Return the value of a JavaScript expression; raises RuntimeError where it throws."""
        answer = self._call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"]["exception"]["description"])
        return answer["result"].get("value")

    def complaints(self) -> list[str]:
        """Return what was written to the console, and which exceptions nobody caught."""
        self.evaluate("0")  # what was said before is here when this is answered
        kinds = {"Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"}
        return [
            json.dumps(event["params"]) for event in self._pipe.events if event["method"] in kinds
        ]

    def requests(self) -> list[str]:
        """Return the addresses that were asked for since `open`."""
        return [
            event["params"]["request"]["url"]
            for event in self._pipe.events
            if event["method"] == "Network.requestWillBeSent"
        ]

    def resize(self, width: int, height: int = 900) -> None:
        """Make the window *width* by *height* pixels large."""
        self._call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        # The page hears of its new width before the next picture is drawn.
        self.evaluate(
            "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
        )

    def prefer(self, scheme: str, media: str = "screen") -> None:
        """Ask for the colours ``light`` or ``dark``, on the *media* ``screen`` or ``print``."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self._call("Emulation.setEmulatedMedia", media=media, features=features)

    def switch_scripts(self, *, on: bool) -> None:
        """Let pages that are opened from now on run scripts, or not."""
        self._call("Emulation.setScriptExecutionDisabled", value=not on)

    def click(self, selector: str) -> None:
        """Click into the middle of the first element that matches *selector*."""
        x, y = self._middle(selector)
        for kind in ("mousePressed", "mouseReleased"):
            self._call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def hover(self, selector: str) -> None:
        """Move the pointer over the middle of the first element that matches *selector*."""
        x, y = self._middle(selector)
        self._call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def press(self, key: str) -> None:
        """Press and release *key*, by its DOM name."""
        code = "Space" if key == " " else key
        number = {"Tab": 9, "Enter": 13, "Escape": 27, " ": 32}.get(key, 0)
        for kind in ("keyDown", "keyUp"):
            self._call(
                "Input.dispatchKeyEvent",
                type=kind,
                key=key,
                code=code,
                text=_KEYS[key] if kind == "keyDown" else "",
                windowsVirtualKeyCode=number,
            )

    def write(self, text: str) -> None:
        """Type *text* into the element that has the focus."""
        self._call("Input.insertText", text=text)

    def picture(self, path: Path) -> None:
        """Save the whole page as a PNG file."""
        answer = self._call("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(answer["data"]))

    def _middle(self, selector: str) -> tuple[float, float]:
        x, y = self.evaluate(
            f"(() => {{ const it = document.querySelector({json.dumps(selector)});"
            "it.scrollIntoView({block: 'center'}); const box = it.getBoundingClientRect();"
            "return [box.x + box.width / 2, box.y + box.height / 2]; })()"
        )
        return x, y

    def _call(self, method: str, **parameters: Any) -> dict[str, Any]:
        return self._pipe.call(method, self._session, **parameters)


@contextlib.contextmanager
def opened(profile: Path) -> Iterator[Page]:
    """Start Chromium with its files in the folder *profile* and yield an empty page."""
    chromium = _chromium_path()
    assert chromium is not None
    pid, commands, answers = _spawned([chromium, *_ARGUMENTS, f"--user-data-dir={profile}"])
    try:
        pipe = _Pipe(commands, answers)
        target = pipe.call("Target.createTarget", url="about:blank")["targetId"]
        session = pipe.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        yield Page(pipe, session)
        with contextlib.suppress(EOFError):
            pipe.call("Browser.close")
    finally:
        os.close(commands)
        os.close(answers)
        # Its helpers are in its process group, and nothing else is.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """Start Chromium once for all tests."""
    if _chromium_path() is None:
        reason = "Chromium is not installed (apt install chromium)"
        if os.environ.get("CI") == "true":
            pytest.fail(f"CI must be able to open pages, but {reason}", pytrace=False)
        pytest.skip(reason)
    with opened(tmp_path_factory.mktemp("profile")) as page:
        yield page


def _chromium_path() -> str | None:
    return shutil.which("chromium")


def _spawned(arguments: list[str]) -> tuple[int, int, int]:
    """Return the pid, where to write commands to, and where to read answers from."""
    their_commands, commands = _pipe()
    answers, their_answers = _pipe()
    with Path(os.devnull).open("r+b") as nothing:
        pid = os.posix_spawn(
            arguments[0],
            arguments,
            os.environ,
            setpgroup=0,
            file_actions=[
                *((os.POSIX_SPAWN_DUP2, nothing.fileno(), number) for number in (0, 1, 2)),
                (os.POSIX_SPAWN_DUP2, their_commands, _COMMANDS_FD),
                (os.POSIX_SPAWN_DUP2, their_answers, _ANSWERS_FD),
            ],
        )
    os.close(their_commands)
    os.close(their_answers)
    return pid, commands, answers


def _pipe() -> tuple[int, int]:
    # Away from the numbers that the two ends are given in the child.
    ends = os.pipe()
    moved = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, _BEYOND_BOTH) for end in ends]
    for end in ends:
        os.close(end)
    return moved[0], moved[1]
