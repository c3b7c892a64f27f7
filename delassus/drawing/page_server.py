"""The web server of a page: viser's, which answers the page of the user of this program alone.

viser's server accepts every connection to its port: from programs of other users of the machine,
and from pages of other sites in the user's browser, by a websocket or a host name that resolves to
this machine (DNS rebinding). The server also sets every property of a slider that a message names,
and opens a public tunnel on request.

viser has no option for these checks. The functions of websockets that it calls have: the request
is checked before the handshake, and messages are checked before viser sees them.
"""

from __future__ import annotations

import io
import logging
import math
import secrets
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from http import HTTPStatus
from typing import Any, TypeGuard

import msgspec
import viser
import websockets.asyncio.server
from websockets.asyncio.server import ServerConnection
from websockets.http11 import Request, Response

from delassus.errors import DelassusError, InputError

HOST = "127.0.0.1"
FIRST_PORT = 8080
"""Port of a page for which no port is named, if the port is free."""
_NAMES = (HOST, "localhost")
"""Host names of the page in requests; with other names, a site has been rebound to this machine.
The port may differ, where it is forwarded."""
_PROTOCOL = f"viser-v{viser.__version__}"
_LARGEST_MESSAGE = 1 << 16
"""Size of the largest message of the page that is read [bytes]; messages have some hundred."""
_CAMERA = {"wxyz": 4, "position": 3, "look_at": 3, "up_direction": 3,
           "fov": 0, "near": 0, "far": 0, "image_height": 0, "image_width": 0}  # fmt: skip
"""Lengths of the fields of a message about the page's camera; 0 for a number."""
_FARTHEST, _NORM = 1e3, 1e-3
"""Largest coordinate of a gizmo [m], and largest deviation of its quaternion's norm from 1."""
_PATCH = threading.Lock()

_log = logging.getLogger(__name__)
# A connection that is no HTTP is no fault of this program.
_log.addFilter(lambda record: record.getMessage() != "opening handshake failed")


class PageServer:
    """A viser server on this machine, for those who know its address.

    Parameters
    ----------
    port : port of the page, 0 for any free one; for None 8080, or any free one if 8080 is in use.

    Attributes
    ----------
    address : address of the page, with a secret path.
    address_once : address that leads to `address` at the first request and is unknown afterwards;
        the command line of a browser shows it to other users of the machine.

    Raises
    ------
    InputError
        If the port cannot be used.
    DelassusError
        If viser does not start its server in the way that is checked here.
    """

    def __init__(self, label: str, port: int | None = None) -> None:
        self._path, self._path_once = (f"/{secrets.token_urlsafe(16)}" for _ in range(2))
        self._socket: socket.socket | None = _listening(port)
        bound = int(self._socket.getsockname()[1])
        with _patched(self._serve), silent():
            self.viser = viser.ViserServer(HOST, bound, label=label, verbose=False)
        if self._socket is not None:
            self.close()
            self._socket.close()
            raise DelassusError(
                f"viser {viser.__version__} does not call websockets.asyncio.server.serve, whose "
                "options keep other users and sites from the page: 'pip install \"viser<1.2\"'"
            )
        self.address: str = f"http://{HOST}:{bound}{self._path}"
        self.address_once: str = f"http://{HOST}:{bound}{self._path_once}"

    def close(self) -> None:
        """End the server."""
        with silent():
            self.viser.stop()

    def _serve(
        self, serve: Callable[..., Any], handler: Any, process_request: Any, options: Any
    ) -> Any:
        """Call `serve` of websockets with the socket and the checks of this page."""
        taken, self._socket = self._socket, None

        def answer(connection: ServerConnection, request: Request) -> Response | None:
            refusal = self._refusal(connection, request)
            if refusal is not None:
                return refusal
            answered: Response | None = process_request(
                connection, Request("/", request.headers)
            )
            return answered

        page = self

        class Checked(ServerConnection):
            """A connection that drops messages which the page does not send."""

            async def recv(self, decode: bool | None = None) -> Any:
                """Return the next message that is accepted."""
                while True:
                    message = page.accepted(await super().recv(decode))
                    if message is not None:
                        return message

        return serve(
            handler, sock=taken, process_request=answer, create_connection=Checked,
            **{**options, "max_size": _LARGEST_MESSAGE, "logger": _log},
        )  # fmt: skip

    def _refusal(self, connection: ServerConnection, request: Request) -> Response | None:
        """Return the answer to a request that is not of the page; None for the page."""
        hosts, origins = request.headers.get_all("Host"), request.headers.get_all("Origin")
        if len(hosts) != 1 or hosts[0].partition(":")[0].lower() not in _NAMES:
            return connection.respond(
                HTTPStatus.FORBIDDEN, f"The host of this page is {' or '.join(_NAMES)}.\n"
            )
        # Browsers name the origin of each websocket; a page that is opened has none.
        is_socket = "Upgrade" in request.headers
        if (origins or is_socket) and origins != [f"http://{hosts[0]}"]:
            return connection.respond(
                HTTPStatus.FORBIDDEN, "Pages of other origins have no access to this page.\n"
            )
        # viser would print that the versions differ.
        if is_socket and request.headers.get_all("Sec-WebSocket-Protocol") != [_PROTOCOL]:
            return connection.respond(
                HTTPStatus.FORBIDDEN, f"The protocol of this page is {_PROTOCOL}.\n"
            )
        path = request.path.partition("?")[0].rstrip("/")
        if secrets.compare_digest(path.encode(), self._path_once.encode()):
            self._path_once = f"/{secrets.token_urlsafe(16)}"
            answer = connection.respond(HTTPStatus.SEE_OTHER, "")
            answer.headers["Location"] = self._path
            return answer
        if not secrets.compare_digest(path.encode(), self._path.encode()):
            return connection.respond(
                HTTPStatus.FORBIDDEN,
                "The address of this page has a secret part: open the address that the program "
                "has printed.\n",
            )
        return None

    def accepted(self, data: object) -> bytes | None:
        """Return a message of the page with values that are in range; None if it is refused.

        Sliders accept finite numbers, which are limited to their range; check boxes and buttons
        accept Booleans, lists their options, and gizmos finite poses. Of all other messages viser
        needs that about the camera alone.
        """
        if not isinstance(data, bytes):
            return None
        try:
            message = msgspec.msgpack.decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return None
        match message:
            case {"type": "GuiUpdateMessage", "uuid": str(name), "updates": {"value": value}}:
                checked = self._checked(name, value)
                updates = {"value": checked}
                return None if checked is None else msgspec.msgpack.encode(
                    {"type": "GuiUpdateMessage", "uuid": name, "updates": updates}
                )  # fmt: skip
            case {"type": "TransformControlsUpdateMessage", "name": str(), "owner": str(),
                  "position": position, "wxyz": wxyz} if len(message) == 5:  # fmt: skip
                near = _are_finite(position, 3) and max(map(abs, position)) <= _FARTHEST
                turned = _are_finite(wxyz, 4) and abs(math.hypot(*wxyz) - 1.0) < _NORM
                return data if near and turned else None
            case {"type": "TransformControlsDragStartMessage" | "TransformControlsDragEndMessage",
                  "name": str(), "owner": str()} if len(message) == 3:  # fmt: skip
                return data
            case {"type": "ViewerCameraMessage", **fields} if fields.keys() == _CAMERA.keys():
                right = all(_are_finite(fields[name], n) for name, n in _CAMERA.items())
                return data if right else None
        return None

    def _checked(self, name: str, value: object) -> float | bool | str | None:
        """Return the value of a handle of the page; None if it is refused."""
        handle = self.viser.gui._gui_input_handle_from_uuid.get(name)
        if isinstance(handle, viser.GuiSliderHandle) and _is_finite(value):
            return min(max(float(value), float(handle.min)), float(handle.max))
        if isinstance(handle, viser.GuiDropdownHandle) and isinstance(value, str):
            return value if value in handle.options else None
        switch = isinstance(handle, viser.GuiCheckboxHandle | viser.GuiButtonHandle)
        return value if switch and isinstance(value, bool) else None


def _listening(port: int | None) -> socket.socket:
    """Return a socket that listens on a port of this machine."""
    wanted = FIRST_PORT if port is None else port
    try:
        return socket.create_server((HOST, wanted))
    except OSError as error:
        if port is None:
            return socket.create_server((HOST, 0))
        raise InputError(
            f"--port {port} cannot be used: {error.strerror}; --port 0 takes any free port"
        ) from error


@contextmanager
def _patched(serve: Callable[..., Any]) -> Iterator[None]:
    """Let `serve` start the servers of websockets, which a thread of viser calls by this name."""
    with _PATCH:
        original = websockets.asyncio.server.serve

        def replaced(
            handler: Any, host: str, port: int, *, process_request: Any, **options: Any
        ) -> Any:
            return serve(original, handler, process_request, options)

        websockets.asyncio.server.serve = replaced  # type: ignore[assignment,misc]
        try:
            yield
        finally:
            websockets.asyncio.server.serve = original  # type: ignore[misc]


def silent() -> redirect_stdout[io.StringIO]:
    """Redirect viser's lines from standard output, which is for the report."""
    return redirect_stdout(io.StringIO())


def _is_finite(value: object) -> TypeGuard[float]:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return math.isfinite(value)


def _are_finite(values: object, count: int) -> bool:
    """Return whether a field is a finite number, or for a count above 0 a list of them."""
    if not count:
        return _is_finite(values)
    return isinstance(values, list) and len(values) == count and all(map(_is_finite, values))
