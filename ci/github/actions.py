"""The runner of GitHub Actions as a step sees it: the event, the outputs, the job summary, and lines for the log.

Text from a pull request must not become a command to the runner, which reads `::…` and `##[…` in whatever is printed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, TypeVar

import click
from pydantic import AliasPath, AwareDatetime, BaseModel, Field, ValidationError

from kernelgate.bench.core import files
from kernelgate.bench.core.errors import UsageError, faults
from kernelgate.ci.document.escape import visible

Number = Annotated[int, Field(gt=0, lt=1 << 53, strict=True)]
Written = TypeVar("Written", bound=BaseModel)


def read_written(path: Path, form: type[Written], command: str) -> Written:
    """What a command left for this step. Raises UsageError where it did not."""
    try:
        return form.model_validate_json(path.read_bytes())
    except (ValidationError, OSError) as error:
        why = faults(error) if isinstance(error, ValidationError) else error.strerror
        raise UsageError(f"{path} is not what `kernelgate {command}` writes: {why}") from None


def at(*keys: str) -> Any:
    return Field(validation_alias=AliasPath(*keys))


class EventPull(BaseModel, defer_build=True):
    number: Number
    head_sha: Annotated[str, at("head", "sha")]
    head_repository: Annotated[str | None, at("head", "repo", "full_name")] = None
    """None of a fork that is gone."""
    body: str | None = None
    author_type: Annotated[str | None, at("user", "type")] = None


class EventGroup(BaseModel, defer_build=True):
    """What a merge queue is about to merge."""

    head_sha: str
    head_ref: str
    base_sha: str


class EventComment(BaseModel, defer_build=True):
    id: Number
    created_at: AwareDatetime
    body: str | None = None
    author: Annotated[str | None, at("user", "login")] = None
    author_type: Annotated[str | None, at("user", "type")] = None
    performed_via_github_app: Any = None


class EventIssue(BaseModel, defer_build=True):
    number: Number
    pull_request: Any = None


class Event(BaseModel, defer_build=True):
    """What is read of an event; one that holds it in another form than GitHub's is refused with the place."""

    action: str | None = None
    pull_request: EventPull | None = None
    merge_group: EventGroup | None = None
    changes: dict[str, Any] | None = None
    inputs: dict[str, Any] | None = None
    comment: EventComment | None = None
    issue: EventIssue | None = None


@dataclass(frozen=True)
class Step:
    """One step's environment; outside of a workflow it is empty, and everything still works."""

    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ), repr=False)

    @property
    def token(self) -> str | None:
        return self.environment.get("GITHUB_TOKEN") or None

    def with_token(self, token: str | None) -> Step:
        return Step({**self.environment, "GITHUB_TOKEN": token}) if token else self

    @property
    def in_workflow(self) -> bool:
        return self.environment.get("GITHUB_ACTIONS") == "true"

    @property
    def api_url(self) -> str:
        return self.environment.get("GITHUB_API_URL") or "https://api.github.com"

    @property
    def repository(self) -> str | None:
        return self.environment.get("GITHUB_REPOSITORY") or None

    @property
    def repository_url(self) -> str | None:
        server = self.environment.get("GITHUB_SERVER_URL")
        return f"{server}/{self.repository}" if server and self.repository else None

    @property
    def run_id(self) -> int:
        """0 outside of a workflow."""
        run = self.environment.get("GITHUB_RUN_ID", "")
        return int(run) if run.isascii() and run.isdigit() else 0

    @property
    def run_url(self) -> str | None:
        run = self.run_id
        return f"{self.repository_url}/actions/runs/{run}" if self.repository_url and run else None

    def event(self) -> Event:
        """What GitHub sent. Raises UsageError outside of a workflow."""
        name = self.environment.get("GITHUB_EVENT_PATH")
        if not name:
            raise UsageError("GITHUB_EVENT_PATH is not set: this needs the event of a workflow run")
        path = Path(name)
        try:
            return Event.model_validate(json.loads(files.content(path).decode()))
        except ValidationError as error:
            raise UsageError(f"{path}: the event is not one of GitHub's: {faults(error)}") from None
        except (OSError, ValueError, RecursionError) as error:
            raise UsageError(f"{path}: the event cannot be read: {error}") from None

    def output(self, **values: str) -> None:
        """Hands values to later steps. One line each: a line break would start an output of its own."""
        for name, value in values.items():
            if len(value.splitlines()) > 1 or value.endswith(("\n", "\r")):
                raise UsageError(f"output {name}: a value with line breaks cannot be an output")
        lines = "".join(f"{name}={value}\n" for name, value in values.items())
        if file_name := self.environment.get("GITHUB_OUTPUT"):
            files.append(Path(file_name), lines.encode())
        else:
            click.echo(lines, nl=False)

    def summary(self, markdown: str) -> None:
        if name := self.environment.get("GITHUB_STEP_SUMMARY"):
            files.append(Path(name), (markdown.rstrip("\n") + "\n\n").encode())

    def log(self, text: str) -> None:
        """One line that says what was done, without the token and without power over the runner."""
        click.echo(f"kernelgate: {self.harmless(text)}")

    def warn(self, text: str) -> None:
        line = self.harmless(text)
        command = f"::warning title=kernelgate::{line.replace('%', '%25')}"
        click.echo(command if self.in_workflow else f"kernelgate: {line}")

    def harmless(self, text: str) -> str:
        line = visible(text, most=2000)
        if self.token:
            line = line.replace(self.token, "***")
        return line.replace("##[", "## [").replace("::", ": :")
