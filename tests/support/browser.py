"""One page in a real headless browser, spoken to over its own debugging pipe; nothing of it reaches a network.

Source: the Chrome DevTools Protocol (domains Page, Runtime, Log, Network, Emulation), `--remote-debugging-pipe`: the
browser reads on descriptor 3 and writes on 4, each message ends with a NUL.
"""

import base64
import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

NAMES: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
LIMIT_S: Final = 60
_FLAGS: Final = (
    "--headless=new", "--disable-gpu", "--no-sandbox", "--disable-dev-shm-usage", "--no-first-run",
    "--no-default-browser-check", "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-extensions", "--disable-default-apps", "--no-pings", "--no-proxy-server",
    "--host-resolver-rules=MAP * ~NOTFOUND", "--remote-debugging-pipe",
)  # fmt: skip


def browser_path() -> str | None:
    """The first browser that is installed."""
    return next((path for name in NAMES if (path := shutil.which(name)) is not None), None)


class Page:
    """`events` are all messages of the browser that answer nothing, in order."""

    def __init__(self, send: int, receive: int) -> None:
        self._send, self._receive, self._rest, self._number = send, receive, b"", 0
        self._session: str | None = None
        self.events: list[dict[str, Any]] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Raises: AssertionError with what the browser says."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._send, data) :]
        while True:
            found = self._next()
            if found.get("id") == self._number:
                assert "error" not in found, (method, found["error"])
                result: dict[str, Any] = found["result"]
                return result
            self.events.append(found)

    def open(self, path: Path) -> None:
        """Returns when everything of it was loaded."""
        seen = len(self.events)
        self.call("Page.navigate", url=path.as_uri())
        while not any(each.get("method") == "Page.loadEventFired" for each in self.events[seen:]):
            self.events.append(self._next())

    def value(self, expression: str) -> Any:
        """What the expression is worth in the page."""
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def look(self, *, scheme: str = "light", media: str = "screen", width: int = 1280) -> bytes:
        """The whole page as PNG."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.call("Emulation.setEmulatedMedia", media=media, features=features)
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        data: str = self.call("Page.captureScreenshot", captureBeyondViewport=True)["data"]
        return base64.b64decode(data)

    def complaints(self) -> list[str]:
        """Everything on the console: errors, refusals of the page's policy, whatever scripts print."""
        found = []
        for each in self.events:
            match each.get("method"):
                case "Log.entryAdded":
                    found.append(each["params"]["entry"]["text"])
                case "Runtime.consoleAPICalled" | "Runtime.exceptionThrown" | "Page.javascriptDialogOpening":
                    found.append(json.dumps(each["params"]))
        return found

    def requests(self) -> list[str]:
        """Every address that was asked for."""
        sent = [each for each in self.events if each.get("method") == "Network.requestWillBeSent"]
        return [each["params"]["request"]["url"] for each in sent]

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            read = os.read(self._receive, 1 << 20)
            assert read, "the browser went away"
            self._rest += read
        line, _, self._rest = self._rest.partition(b"\0")
        found: dict[str, Any] = json.loads(line)
        return found


@contextmanager
def opened_browser(program: str, folder: Path) -> Iterator[Page]:
    """A page of a browser whose everything is in the folder; it is gone afterwards, with all its processes."""
    theirs_in, ours_out = os.pipe()
    ours_in, theirs_out = os.pipe()
    # The child finds its ends as 3 and 4 whatever they are here.
    script = f'exec 3<&{theirs_in} 4>&{theirs_out}; exec "$@"'
    browser = subprocess.Popen(
        ["/bin/bash", "-c", script, "browser", program, *_FLAGS, f"--user-data-dir={folder / 'profile'}"],
        pass_fds=(theirs_in, theirs_out),
        cwd=folder,
        env={**os.environ, "HOME": str(folder), "XDG_CONFIG_HOME": str(folder), "XDG_CACHE_HOME": str(folder)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    os.close(theirs_in)
    os.close(theirs_out)
    try:
        yield Page(ours_out, ours_in)
    finally:
        os.close(ours_out)  # the browser ends when its pipe does
        os.close(ours_in)
        try:
            browser.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            os.killpg(browser.pid, signal.SIGKILL)
            browser.wait()
