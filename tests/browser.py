"""A headless Chromium, driven over its DevTools protocol: opens a page, presses its parts, and says what went wrong."""

import itertools
import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import websocket

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")


def find() -> str | None:
    """The command of the first Chromium on PATH."""
    return next(filter(None, map(shutil.which, NAMES)), None)


class PageError(Exception):
    """JavaScript that a test ran in the page has failed."""


class Page:
    """One page of the browser. `complaints` collects uncaught errors and console errors, as texts."""

    def __init__(self, connection: websocket.WebSocket) -> None:
        self._connection = connection
        self._numbers = itertools.count(1)
        self._session: str | None = None
        self._loaded = False
        self.complaints: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)[
            "sessionId"
        ]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Sends a command of the protocol and returns its result."""
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": parameters}
        self._connection.send(
            json.dumps(message | ({"sessionId": self._session} if self._session else {}))
        )
        while (answer := self._receive()).get("id") != number:
            pass
        if "error" in answer:
            raise PageError(answer["error"]["message"])
        return answer["result"]

    def open(self, path: Path, width: int = 1280, dark: bool = False) -> None:
        """Opens a file and waits until it is loaded and its scripts have run."""
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
        self.call("Emulation.setDeviceMetricsOverride", **size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self._loaded = False
        self.call("Page.navigate", url=path.resolve().as_uri())
        while not self._loaded:
            self._receive()

    def run(self, script: str) -> Any:
        """The value of an expression in the page; a promise is waited for. Raises PageError."""
        done = self.call(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        if "exceptionDetails" in done:
            raise PageError(json.dumps(done["exceptionDetails"])[:2000])
        return done["result"].get("value")

    def wait(self, condition: str, seconds: float = 120) -> None:
        """Waits until an expression is true in the page. Raises PageError when it does not become so in time."""
        deadline = time.monotonic() + seconds
        while not self.run(condition):
            if time.monotonic() > deadline:
                raise PageError(
                    f"after {seconds} s, this is not so: {condition}; complaints: {self.complaints}"
                )
            time.sleep(0.05)

    def press(self, selector: str) -> None:
        """Clicks with the mouse in the middle of an element."""
        place = self.run(
            f"(() => {{ const element = document.querySelector({json.dumps(selector)});"
            "element.scrollIntoView({block: 'center'}); const box = element.getBoundingClientRect();"
            "return [box.x + box.width / 2, box.y + box.height / 2]; })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            event = {"type": kind, "x": place[0], "y": place[1], "button": "left", "clickCount": 1}
            self.call("Input.dispatchMouseEvent", **event)

    def _receive(self) -> dict[str, Any]:
        message = json.loads(self._connection.recv())
        match message.get("method"):
            case "Page.loadEventFired":
                self._loaded = True
            case "Runtime.exceptionThrown":
                details = message["params"]["exceptionDetails"]
                self.complaints.append(
                    details.get("exception", {}).get("description") or details["text"]
                )
            case "Log.entryAdded" if message["params"]["entry"]["level"] == "error":
                self.complaints.append(message["params"]["entry"]["text"])
            case "Runtime.consoleAPICalled" if message["params"]["type"] in ("error", "assert"):
                self.complaints.append(
                    str([part.get("value") for part in message["params"]["args"]])
                )
        return message


@contextmanager
def chromium(command: str, profile: Path) -> Iterator[Page]:
    """A page of a new browser without network, which ends with the `with`; `profile` is an empty folder."""
    options = "--headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run"
    options = [
        *options.split(),
        "--remote-debugging-port=0",
        f"--user-data-dir={profile}",
        "--host-resolver-rules=MAP * ~NOTFOUND",
    ]
    with subprocess.Popen(
        [command, *options], stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        try:
            lines = iter(process.stderr.readline, "")
            address = next(
                line.split()[-1] for line in lines if line.startswith("DevTools listening on")
            )
            connection = websocket.create_connection(address, timeout=600, suppress_origin=True)
            yield Page(connection)
            connection.close()
        finally:
            process.terminate()
