"""A headless Chromium for tests of pages, driven by its DevTools protocol; skips without one."""

from __future__ import annotations

import base64
import json
import re
import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hanging import HANG_S
from processes import Program

_PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
_CALL_LIMIT_S = 240.0


class Page:
    """A page of the browser."""

    def __init__(self, socket: Any) -> None:
        self._socket, self._count = socket, 0

    def call(self, method: str, **parameters: Any) -> Any:
        """Return the result of a method of the protocol."""
        self._count += 1
        self._socket.send(json.dumps({"id": self._count, "method": method, "params": parameters}))
        while True:
            answer = json.loads(self._socket.recv(timeout=_CALL_LIMIT_S))
            if answer.get("id") == self._count:
                assert "error" not in answer, answer
                return answer["result"]

    def value(self, expression: str) -> Any:
        """Return the value of an expression of JavaScript."""
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def open(self, address: str) -> None:
        self.call("Page.navigate", url=address)

    def press(self, key: str) -> None:
        """Press and release a key."""
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key)

    def screenshot(self) -> bytes:
        """Return a picture of the page, as PNG."""
        return base64.b64decode(self.call("Page.captureScreenshot")["data"])


@contextmanager
def browser(size: tuple[int, int] = (1280, 800)) -> Iterator[Page]:
    """Provide an empty page of a browser that ends with the block."""
    program = next(filter(None, map(shutil.which, _PROGRAMS)), None)
    if program is None:
        pytest.skip(f"none of {', '.join(_PROGRAMS)} is installed")
    from websockets.sync import client
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        command = [
            program, "--headless=new", "--no-sandbox", "--enable-unsafe-swiftshader",
            "--use-gl=angle", "--use-angle=swiftshader", "--remote-debugging-port=0",
            "--no-first-run", "--disable-dev-shm-usage", f"--user-data-dir={folder}/profile",
            f"--window-size={size[0]},{size[1]}", "about:blank",
        ]  # fmt: skip
        with Program(*command) as chromium:

            def address() -> list[str]:
                return re.findall(r"DevTools listening on (ws://[^/]+)", chromium.output)

            (found,) = chromium.until(address, "address of the browser")
            try:
                with client.connect(_page_address(found), max_size=None) as socket:
                    page = Page(socket)
                    page.call("Page.enable")
                    yield page
            finally:
                chromium.stop(signal.SIGTERM)


def _page_address(browser_address: str) -> str:
    """Return the address of the browser's first page."""
    import urllib.request

    with urllib.request.urlopen(f"http{browser_address[2:]}/json/list", timeout=HANG_S) as answer:
        pages = json.loads(answer.read())
    return next(str(page["webSocketDebuggerUrl"]) for page in pages if page["type"] == "page")
