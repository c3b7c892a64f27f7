"""The server of a page: only the page of its own address reaches it, with values in range."""

from __future__ import annotations

import http.client
import json
import math
import socket
from collections.abc import Iterator
from urllib.parse import urlsplit

import msgspec
import numpy as np
import pytest
import viser
import websockets.asyncio.server
from processes import wait_until
from websockets.sync.client import ClientConnection, connect

from delassus.drawing import page_server
from delassus.drawing.page_server import PageServer
from delassus.errors import DelassusError, InputError
from delassus_ros.verbs.main import main

LIMIT_S = 300.0
CAMERA = {"type": "ViewerCameraMessage", "wxyz": [1.0, 0.0, 0.0, 0.0], "position": [1.0, 1, 1],
          "fov": 1.0, "near": 0.01, "far": 100.0, "image_height": 600, "image_width": 800,
          "look_at": [0.0, 0.0, 0.0], "up_direction": [0.0, 0.0, 1.0]}  # fmt: skip

GIZMO = {"type": "TransformControlsUpdateMessage", "name": "/robot/drag", "owner": "",
         "wxyz": [1.0, 0.0, 0.0, 0.0], "position": [0.1, 0.2, 0.3]}  # fmt: skip
GRABBED = {"type": "TransformControlsDragStartMessage", "name": "/robot/drag", "owner": ""}


@pytest.fixture(scope="module")
def server() -> Iterator[PageServer]:
    page = PageServer("test", 0)
    try:
        yield page
    finally:
        page.close()


def answer(page: PageServer, path: str, headers: dict[str, str]) -> tuple[int, str, str]:
    """Return status, text and location of the answer to a request with these headers alone."""
    address = urlsplit(page.address)
    connection = http.client.HTTPConnection(address.hostname, address.port, timeout=LIMIT_S)
    try:
        connection.putrequest("GET", path, skip_host=True, skip_accept_encoding=True)
        for name, value in headers.items():
            connection.putheader(name, value.replace("PORT", str(address.port)))
        connection.endheaders()
        found = connection.getresponse()
        if found.status == http.HTTPStatus.SWITCHING_PROTOCOLS:
            return found.status, "", ""
        return found.status, found.read().decode(), found.getheader("Location", "")
    finally:
        connection.close()


SOCKET = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13",
          "Sec-WebSocket-Key": "MDEyMzQ1Njc4OWFiY2RlZg==",
          "Sec-WebSocket-Protocol": f"viser-v{viser.__version__}"}  # fmt: skip
HOST, ORIGIN = {"Host": "127.0.0.1:PORT"}, {"Origin": "http://127.0.0.1:PORT"}
ELSEWHERE = {"Origin": "https://elsewhere.example"}


@pytest.mark.parametrize(
    ("path", "headers", "status", "words"),
    [
        ("", HOST, 200, "<html"),
        ("/?darkMode", {"Host": "LocalHost:9000"}, 200, "<html"),
        ("", {**HOST, **ORIGIN}, 200, "<html"),
        ("", {**HOST, **ORIGIN, **SOCKET}, 101, ""),
        ("", {"Host": "localhost:9", "Origin": "http://localhost:9", **SOCKET}, 101, ""),
        # A page of another site, another port or a file in the same browser.
        ("", {**HOST, **ELSEWHERE, **SOCKET}, 403, "other origins"),
        ("", {**HOST, "Origin": "http://127.0.0.1:1", **SOCKET}, 403, "other origins"),
        ("", {**HOST, "Origin": "https://127.0.0.1:PORT", **SOCKET}, 403, "other origins"),
        ("", {**HOST, "Origin": "null", **SOCKET}, 403, "other origins"),
        ("", {**HOST, **SOCKET}, 403, "other origins"),
        ("", {**HOST, **ELSEWHERE}, 403, "other origins"),
        # A name of another site that resolves to this machine.
        ("", {"Host": "elsewhere.example:PORT"}, 403, "host of this page is 127.0.0.1"),
        ("", {"Host": "elsewhere.example", "Origin": "http://elsewhere.example", **SOCKET}, 403,
         "host of this page is"),
        ("", {}, 403, "host of this page is"),
        ("", {**HOST, **ORIGIN, **SOCKET, "Sec-WebSocket-Protocol": "viser-v0"}, 403, "viser-v"),
        # A program of another user, who does not know the secret part.
        ("no", HOST, 403, "secret part"),
        ("no", {**HOST, **ORIGIN, **SOCKET}, 403, "secret part"),
    ],
)  # fmt: skip
def test_only_the_page_of_the_address_is_answered(
    server: PageServer, path: str, headers: dict[str, str], status: int, words: str
) -> None:
    base = "/" if path == "no" else urlsplit(server.address).path + path
    found, text, _ = answer(server, base, headers)
    assert found == status and words in text


def test_the_address_of_a_command_line_is_valid_once(server: PageServer) -> None:
    once = urlsplit(server.address_once).path
    assert answer(server, once, {**HOST, **ELSEWHERE})[0] == 403
    assert answer(server, once, HOST)[::2] == (303, urlsplit(server.address).path)
    assert answer(server, once, HOST)[0] == 403


@pytest.mark.parametrize("data", [b"\0\xff" * 50, b"GET\r\n\r\n", b""])
def test_connections_without_http_leave_no_words(server: PageServer, capfd, data: bytes) -> None:
    address = urlsplit(server.address)
    with socket.create_connection((address.hostname, address.port), LIMIT_S) as connection:
        connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(4096):
            pass
    assert answer(server, address.path, HOST)[0] == 200
    assert capfd.readouterr().err == ""


def opened(page: PageServer) -> ClientConnection:
    """Return a connection of the page."""
    address = urlsplit(page.address)
    return connect(
        f"ws://{address.netloc}{address.path}", origin=f"http://{address.netloc}",
        subprotocols=[f"viser-v{viser.__version__}"], max_size=None, open_timeout=LIMIT_S,
    )  # fmt: skip


def updated(handle: object, value: object, name: str = "value") -> bytes:
    """Return the message of the page that sets a property of a handle."""
    return msgspec.msgpack.encode({
        "type": "GuiUpdateMessage", "uuid": handle._impl.uuid, "updates": {name: value}
    })  # fmt: skip


@pytest.mark.parametrize(
    ("sent", "got"),
    [
        (-0.25, -0.25), (1, 1.0), (1.5, 1.5), (7.0, 1.5), (-1e300, -0.5),
        (math.inf, None), (-math.inf, None), (math.nan, None), (True, None), ("1.0", None),
        (None, None), ([1.0], None),
    ],
)  # fmt: skip
def test_sliders_stay_within_their_limits(server: PageServer, sent: object, got: object) -> None:
    slider = server.viser.gui.add_slider("knee", -0.5, 1.5, 0.01, 0.725)
    found = server.accepted(updated(slider, sent))
    assert found == (None if got is None else updated(slider, got))


def test_messages_that_the_page_does_not_send_are_dropped(server: PageServer) -> None:
    slider = server.viser.gui.add_slider("knee", -0.5, 1.5, 0.01, 0.725)
    box, button = (server.viser.gui.add_checkbox("foot", True), server.viser.gui.add_button("go"))
    words = server.viser.gui.add_html("shown")
    choice = server.viser.gui.add_dropdown("algorithm", ["auto", "ltl"])
    assert server.accepted(updated(choice, "ltl")) == updated(choice, "ltl")
    encode = msgspec.msgpack.encode
    for handle in (box, button):
        assert server.accepted(updated(handle, False)) == updated(handle, False)
        assert server.accepted(updated(handle, 1)) is None
    assert server.accepted(encode(CAMERA)) == encode(CAMERA)
    encoded = (encode({**GIZMO, "position": [1.0, 2, -3.0]}), encode(GIZMO), encode(GRABBED),
               encode({**GRABBED, "type": "TransformControlsDragEndMessage"}))  # fmt: skip
    assert [server.accepted(data) for data in encoded] == [*encoded]
    for refused in (
        updated(slider, 100.0, "max"),
        updated(slider, [], "update_cb"),
        updated(choice, "kjr"), updated(choice, True), updated(choice, ["ltl"]),
        updated(choice, ["kjr"], "options"),
        updated(words, "shown by someone else"),
        encode({"type": "GuiUpdateMessage", "uuid": "unknown", "updates": {"value": 1.0}}),
        encode({"type": "GuiUpdateMessage", "uuid": 1, "updates": {"value": 1.0}}),
        encode({"type": "ShareUrlRequest"}),
        encode({**GIZMO, "position": [math.inf, 0.0, 0.0]}),
        encode({**GIZMO, "position": [0.0, 0.0]}), encode({**GIZMO, "position": 1.0}),
        encode({**GIZMO, "position": [1e4, 0.0, 0.0]}),
        encode({**GIZMO, "wxyz": [0.0, 0.0, 0.0, 0.0]}), encode({**GIZMO, "wxyz": [1, 0, 0]}),
        encode({**GIZMO, "wxyz": [math.nan, 0.0, 0.0, 1.0]}), encode({**GIZMO, "more": 1.0}),
        encode({**GIZMO, "name": 1}), encode({**GRABBED, "more": 1.0}),
        encode({**GRABBED, "owner": None}),
        encode({**CAMERA, "fov": math.nan}),
        encode({**CAMERA, "wxyz": [1.0, 0.0, 0.0]}),
        encode({**CAMERA, "position": 1.0}),
        encode({**CAMERA, "more": 1.0}),
        encode([1, 2]), b"\xc1", b"\xa1\xff", b"", "text",
    ):  # fmt: skip
        assert server.accepted(refused) is None


def test_a_slider_of_a_connection_moves_a_joint_within_its_limits(server: PageServer) -> None:
    slider = server.viser.gui.add_slider("elbow", -0.5, 1.5, 0.01, 0.725)
    moved: list[float] = []
    slider.on_update(lambda _: moved.append(float(slider.value)))
    with opened(server) as connection:
        connection.send(msgspec.msgpack.encode(CAMERA))
        for data in (updated(slider, math.inf), "text", b"\xc1", updated(slider, 0.123),
                     updated(slider, 9.0)):  # fmt: skip
            connection.send(data)
        wait_until(lambda: len(moved) == 2, "two moves of the slider")
    assert slider.value == 1.5 and not np.isinf(moved).any()


def test_a_used_port_is_refused_and_the_default_gives_way(capsys, monkeypatch) -> None:
    with socket.create_server((page_server.HOST, 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(InputError, match=f"--port {port} cannot be used: Address already in"):
            PageServer("test", port)
        assert main(["view", "quadruped", "--port", str(port), "--no-browser"]) == 2
        assert "--port 0 takes any free port" in capsys.readouterr().err
        monkeypatch.setattr(page_server, "FIRST_PORT", port)
        page = PageServer("test")
        page.close()
        assert urlsplit(page.address).port not in (0, port)


def test_a_viser_without_the_checks_is_refused(monkeypatch) -> None:
    from viser.infra import _infra

    class Unchecked:
        """The websockets of a viser that calls another function."""

        def __getattr__(self, name: str) -> object:
            return getattr(websockets, name)

    unchecked = Unchecked()
    unchecked.asyncio = type("Asyncio", (), {"server": type("Server", (), {
        **vars(websockets.asyncio.server)})})
    monkeypatch.setattr(_infra, "websockets", unchecked)
    with pytest.raises(DelassusError, match="does not call websockets.asyncio.server.serve"):
        PageServer("test", 0)


def test_the_browser_gets_the_address_that_is_valid_once(capsys, monkeypatch) -> None:
    from delassus.cli import page

    calls: list[str] = []
    monkeypatch.setattr(page.webbrowser, "open", calls.append)
    assert main(["view", "quadruped", "--seconds", "0.1", "--port", "0", "--json"]) == 0
    captured = capsys.readouterr()
    address = json.loads(captured.out)["address"]
    assert f"{address}  (Ctrl-C ends it)" in captured.err
    assert len(calls) == 1 and calls[0] != address
    assert urlsplit(calls[0]).netloc == urlsplit(address).netloc
