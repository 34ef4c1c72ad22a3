"""Serves the page of a session to browsers of this machine: on the loopback address alone, two paths, to read only.

uvicorn is the server; what answers is the function `answer`. A page elsewhere could point a name of its own at the
loopback address (DNS rebinding) and read what is served: the Host header gives that away, and is refused.
"""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import uvicorn

from kernelgate.bench.core.errors import KernelgateError, UsageError

ADDRESS = "127.0.0.1"
OURS = re.compile(rb"(127\.0\.0\.1|localhost)(:\d{1,5})?")
"""Any port: it may be forwarded from another machine's."""
HEADERS = {
    "cache-control": "no-store",
    "content-security-policy": "frame-ancestors 'none'",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}
"""Beside the page's own policy, which stands in the page."""
HTML, JSON, TEXT = "text/html; charset=utf-8", "application/json", "text/plain; charset=utf-8"

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Headers = Iterable[tuple[bytes, bytes]]


@dataclass(frozen=True)
class Served:
    """How each path's text is made, anew for each request. They may raise KernelgateError."""

    page: Callable[[], str]
    state_json: Callable[[], str]


@dataclass(frozen=True)
class PageAnswer:
    status: int
    kind: str
    text: str


def answer(method: str, path: str, headers: Headers, served: Served) -> PageAnswer:
    """To one request. A log that cannot be read is said with status 500, as `error` in JSON."""
    hosts = [value for name, value in headers if name.lower() == b"host"]
    if len(hosts) != 1 or not OURS.fullmatch(hosts[0]):
        return PageAnswer(421, TEXT, f"This answers to http://{ADDRESS} and http://localhost alone.\n")
    if path not in ("/", "/state.json"):
        return PageAnswer(404, TEXT, "There are / and /state.json.\n")
    if method not in ("GET", "HEAD"):
        return PageAnswer(405, TEXT, "Only GET and HEAD: nothing can be changed here.\n")
    try:
        return PageAnswer(200, HTML, served.page()) if path == "/" else PageAnswer(200, JSON, served.state_json())
    except KernelgateError as error:
        text = str(error)
        return PageAnswer(500, TEXT, f"{text}\n") if path == "/" else PageAnswer(500, JSON, json.dumps({"error": text}))


def listening(port: int) -> socket.socket:
    """A socket on the loopback address; 0 is any free port. Raises UsageError where the port cannot be had."""
    bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((ADDRESS, port))
        bound.listen()
    except OSError as error:
        bound.close()
        why = (error.strerror or str(error)).lower()
        raise UsageError(f"--port {port} of {ADDRESS} cannot be had ({why}): name another; 0 is any free one") from None
    return bound


def serve(port: int, served: Served, at: Callable[[str], None]) -> None:
    """Until Ctrl-C. `at` is told the address, once browsers are answered there."""
    settings = uvicorn.Config(
        _application(served),
        access_log=False,
        h11_max_incomplete_event_size=1 << 14,
        http="h11",
        lifespan="off",
        limit_concurrency=32,
        log_level="warning",
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=1,
        ws="none",
    )
    with listening(port) as bound:
        at(f"http://{ADDRESS}:{bound.getsockname()[1]}/")
        with suppress(KeyboardInterrupt):
            uvicorn.Server(settings).run(sockets=[bound])


def _application(served: Served) -> Callable[[Message, Receive, Send], Awaitable[None]]:
    """The answers as ASGI, version 3, has them."""

    async def application(scope: Message, _: Receive, send: Send) -> None:
        found = answer(scope["method"], scope["path"], scope["headers"], served)
        body = found.text.encode()
        told = {"content-type": found.kind, "content-length": str(len(body)), **HEADERS}
        headers = [(name.encode(), value.encode()) for name, value in told.items()]
        await send({"type": "http.response.start", "status": found.status, "headers": headers})
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})

    return application
