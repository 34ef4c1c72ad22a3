"""What `kernelgate session …` answers, for programs: docs/schemas/session-*.schema.json.

`session status` answers the state of `ci/lab/state.py`, `session try` the event of `ci/lab/log.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from kernelgate.ci.document.answer import VerbAnswer
from kernelgate.ci.lab.state import NextCommand, SessionState, Stop


@dataclass(frozen=True, kw_only=True)
class WhatIsNext(NextCommand):
    """The answer of `session next`, and part of what every verb answers after which the session goes on."""

    session: str
    stop: Stop | None
    """Why the session is to be closed, with exit code 4; null while it may go on."""


@dataclass(frozen=True, kw_only=True)
class BegunSession(WhatIsNext):
    folder: str
    """Below the checkout."""


@dataclass(frozen=True, kw_only=True)
class GatesTried(WhatIsNext):
    passed: bool
    said: tuple[str, ...]
    """Of each gate that was tried, what was seen."""


@dataclass(frozen=True, kw_only=True)
class DecidedTry(WhatIsNext):
    number: int
    kept: bool
    patch: str | None
    """Of what was reverted, below the checkout; null where the sources were as before."""


@dataclass(frozen=True, kw_only=True)
class LoggedCost(WhatIsNext):
    of: Literal["gpu", "assistant", "other"]
    usd: float


class LoggedNote(VerbAnswer):
    session: str
    kind: Literal["believed", "learnt", "mistake", "question", "other"]
    said: str


class SessionPage(VerbAnswer):
    session: str
    file: str | None
    """That was written; null with --serve."""
    address: str | None
    """With --serve, as soon as it answers."""


class ClosedSession(VerbAnswer):
    session: str
    files: tuple[str, ...]
    """The report and its drawings, below the checkout."""


class SubmittedSession(VerbAnswer):
    session: str
    text: str
    """The report with its questions, as Markdown."""
    pull_request: int | None
    """Where it was posted as a comment; null where it was not."""
    issue: int | None
    """Where it was posted as an issue; null where it was not."""


def of_next(state: SessionState, form: type[WhatIsNext] = WhatIsNext, **besides: Any) -> WhatIsNext:
    """What comes next, in this form, with the fields that it has besides."""
    return form(**vars(state.next), session=state.name, stop=state.stop, **besides)
