"""A headless Chromium for tests of pages, driven by its DevTools protocol; skips without one."""

from __future__ import annotations

import base64
import json
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hanging import HANG_S

_PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
_START_LIMIT_S = 60.0
_CALL_LIMIT_S = 240.0
_POLL_S = 0.05


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


def wait_until(condition: Callable[[], bool], limit: float = 60.0) -> None:
    """Wait for a condition; the test fails after the limit [s]."""
    deadline = time.monotonic() + limit
    while not condition():
        assert time.monotonic() < deadline, f"not within {limit} s: {condition}"
        time.sleep(_POLL_S)


@contextmanager
def browser(size: tuple[int, int] = (1280, 800)) -> Iterator[Page]:
    """Provide an empty page of a browser that ends with the block."""
    program = next(filter(None, map(shutil.which, _PROGRAMS)), None)
    if program is None:
        pytest.skip(f"none of {', '.join(_PROGRAMS)} is installed")
    client = pytest.importorskip("websockets.sync.client")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        log = Path(folder) / "log"
        with log.open("w") as output:
            process = subprocess.Popen(
                [program, "--headless=new", "--no-sandbox", "--enable-unsafe-swiftshader",
                 "--use-gl=angle", "--use-angle=swiftshader", "--remote-debugging-port=0",
                 "--no-first-run", "--disable-dev-shm-usage", f"--user-data-dir={folder}/profile",
                 f"--window-size={size[0]},{size[1]}", "about:blank"],
                stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
            )  # fmt: skip
        try:
            found: list[str] = []

            def listens() -> bool:
                assert process.poll() is None, log.read_text()
                found[:] = re.findall(r"DevTools listening on (ws://[^/]+)", log.read_text())
                return bool(found)

            wait_until(listens, _START_LIMIT_S)
            with client.connect(f"{_page_address(client, found[0])}", max_size=None) as socket:
                page = Page(socket)
                page.call("Page.enable")
                yield page
        finally:
            process.terminate()
            try:
                process.wait(HANG_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(HANG_S)


def _page_address(client: Any, browser_address: str) -> str:
    """Return the address of the browser's first page."""
    import urllib.request

    with urllib.request.urlopen(f"http{browser_address[2:]}/json/list", timeout=HANG_S) as answer:
        pages = json.loads(answer.read())
    return next(str(page["webSocketDebuggerUrl"]) for page in pages if page["type"] == "page")
