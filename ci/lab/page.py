"""The page of a session: what is known of it, drawn in one place; in a file, or served live.

Served on the loopback address alone, two paths, to read only: uvicorn is the server, what answers is the function
`answer`. A page elsewhere could point a name of its own at the loopback address (DNS rebinding) and read what is
served: the Host header gives that away, and is refused.
"""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from markupsafe import Markup

from kernelgate.bench.core.errors import KernelgateError, UsageError
from kernelgate.ci.document import drawing, render
from kernelgate.ci.document.model import Code, Line
from kernelgate.ci.lab import drawings, folder, report
from kernelgate.ci.lab.state import SessionState, state_of
from kernelgate.ci.policy.policy import Policy

MARKS = {
    **dict.fromkeys(("passed", "reached", "within", "kept"), ("good", "✓")),
    **dict.fromkeys(("failed", "missed", "spent"), ("bad", "!")),
    "skipped": ("warn", "–"),
    **dict.fromkeys(("open", "not yet"), ("same", "")),
    "not known": ("same", "–"),
    "reverted": ("same", "↩"),
    "undecided": ("unknown", "?"),
}
"""What stands before a line, by the word that it stands for: its colour and its sign."""


def page(state: SessionState, live: bool = False) -> str:
    """One HTML file that fetches nothing; a live one asks its server, and no other, for what has changed."""
    changing = Markup(shown(state))  # noqa: S704 (rendered with everything escaped)
    return render.page("kernelgate.ci.lab", state=state, live=live, shown=changing)


def shown(state: SessionState) -> str:
    """The part of the page that changes with the log, as HTML."""
    opened, drawn = state.opened, drawings.gains(state.tries)
    title = "Gain of each try over what stood before it"
    note = "Percent less time with its 95% interval; kept ones are filled."
    return render.html("kernelgate.ci.lab").get_template("shown.html.jinja").render(
        state=state,
        about=" · ".join(filter(None, (opened.name, opened.template, opened.card, *opened.cases, opened.gpu))),
        tone="warn" if state.stop else "good" if state.closed == "done" else "same",
        marks=MARKS,
        metrics=report.metrics(state),
        took=report.took,
        gain=report.gain_words,
        commands=_with_commands,
        drawing=drawn and drawing.figure(title, drawn.spoken, drawn.height, *drawn.content, note=note),
    )  # fmt: skip


def _with_commands(text: str) -> Line:
    """What stands between ` and ` is a command; an odd one is a character."""
    parts = text.split("`") if text.count("`") % 2 == 0 else [text]
    return tuple(Code(part) if number % 2 else part for number, part in enumerate(parts) if part)


# ---- live ------------------------------------------------------------------------------------------------------------

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
Served = Mapping[str, tuple[str, Callable[[], str]]]
"""By its path, each text's kind and how it is made, anew for each request, which may raise KernelgateError."""


def served(session: Path, policy: Policy) -> Served:
    """The page of the session in this folder, and what the page asks for: the part that changes, as `html`."""

    def now() -> SessionState:
        return state_of(folder.read(session).events, policy, folder.now())

    return {
        "/": (HTML, lambda: page(now(), live=True)),
        "/state.json": (JSON, lambda: json.dumps({"html": shown(now())})),
    }


def answer(method: str, path: str, headers: Iterable[tuple[bytes, bytes]], served: Served) -> tuple[int, str, str]:
    """To one request: status, kind and text. A log that cannot be read is said with status 500, as `error` in JSON."""
    hosts = [value for name, value in headers if name.lower() == b"host"]
    if len(hosts) != 1 or not OURS.fullmatch(hosts[0]):
        return 421, TEXT, f"This answers to http://{ADDRESS} and http://localhost alone.\n"
    if path not in served:
        return 404, TEXT, f"There are {' and '.join(served)}.\n"
    if method not in ("GET", "HEAD"):
        return 405, TEXT, "Only GET and HEAD: nothing can be changed here.\n"
    kind, made = served[path]
    try:
        return 200, kind, made()
    except KernelgateError as error:
        if kind == JSON:
            return 500, JSON, json.dumps({"error": str(error)})
        return 500, TEXT, f"{error}\n"


def listening(port: int) -> socket.socket:
    """A socket on the loopback address; 0 is any free port. Raises UsageError where the port cannot be had."""
    try:
        return socket.create_server((ADDRESS, port))
    except OSError as error:
        why = (error.strerror or str(error)).partition(" (while")[0].lower()
        raise UsageError(f"--port {port} of {ADDRESS} cannot be had ({why}): name another; 0 is any free one") from None


def serve(port: int, served: Served, at: Callable[[str], None]) -> None:
    """Until Ctrl-C. `at` is told the address, once browsers are answered there."""
    import uvicorn  # of the extra `page`

    async def application(scope: Message, _: object, send: Callable[[Message], Awaitable[None]]) -> None:
        status, kind, text = answer(scope["method"], scope["path"], scope["headers"], served)
        body = text.encode()
        told = {"content-type": kind, "content-length": str(len(body)), **HEADERS}
        headers = [(name.encode(), value.encode()) for name, value in told.items()]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})

    settings = uvicorn.Config(
        application,
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
