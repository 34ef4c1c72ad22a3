"""What the verbs read of an event, checked at the door: an event that lacks it is refused with its name."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, Field, ValidationError

from kernelgate.bench.core.errors import UsageError, faults

Number = Annotated[int, Field(gt=0, lt=1 << 53, strict=True)]


def _moment(text: str) -> str:
    if datetime.fromisoformat(text).tzinfo is None:
        raise ValueError("a time without its zone")
    return text


class EventRepository(BaseModel):
    full_name: str


class EventHead(BaseModel):
    sha: str
    repo: EventRepository | None = None


class EventUser(BaseModel):
    login: str
    type: str


class EventPull(BaseModel):
    number: Number
    head: EventHead
    body: str | None = None
    user: EventUser | None = None


class EventComment(BaseModel):
    id: Number
    created_at: Annotated[str, AfterValidator(_moment)]
    user: EventUser | None = None


class EventIssue(BaseModel):
    number: Number


class Event(BaseModel):
    action: str | None = None
    pull_request: EventPull | None = None
    changes: dict[str, Any] | None = None
    inputs: dict[str, Any] | None = None
    comment: EventComment | None = None
    issue: EventIssue | None = None


def checked(payload: Any, name: str) -> dict[str, Any]:
    """The payload as it is. Raises UsageError where a part that a verb reads has another form than GitHub's."""
    try:
        Event.model_validate(payload)
    except ValidationError as error:
        raise UsageError(f"{name}: the event is not one of GitHub's: {faults(error)}") from None
    found: dict[str, Any] = payload
    return found
