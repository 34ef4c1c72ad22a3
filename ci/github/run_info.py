"""What GitHub itself says of a workflow run: `kernelgate fetch` writes it, `kernelgate report --from` goes by it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import ConfigDict, Field, ValidationError

from kernelgate.bench.errors import UsageError
from kernelgate.bench.record import Model

TARGET = "target.json"


class Job(Model):
    """A job of the run, how it ended, and the step where it stopped."""

    name: str
    conclusion: str
    step: str | None = None


class Target(Model):
    """What GitHub says of the run; everything here comes from the API."""

    schema_: Annotated[Literal["kernelgate.target/1"], Field(alias="schema")] = "kernelgate.target/1"
    repository: str
    pull_request: int | None = None
    head_sha: str
    base_sha: str | None = None
    """What the head is compared with; of a pull request its merge base. None where the head was measured alone."""
    run_id: int
    run_attempt: int
    run_url: str
    conclusion: str | None = None
    no_pull_request: str | None = None
    """Why there is none, where there should be."""
    shared_head: bool = False
    """Several pull requests have this head commit; a check run belongs to the commit, and so to all of them."""
    changes_judges: bool = False
    """The pull request changes what measures it, so that its records prove nothing."""
    refused: tuple[str, ...] = ()
    """Artifacts that were refused, and why."""
    failed: tuple[Job, ...] = ()
    measured: bool = True
    """Whether a job that builds or measures was started at all."""
    planned: bool = True
    """Whether the run came to a decision on what is to be measured: one that did not proves nothing by its silence."""
    under_way: bool = False
    """The measurement goes on, in this run or a newer one, or waits to be approved; its end is reported by itself."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_by_name=True, validate_by_alias=True)


def write_target(target: Target, folder: Path) -> None:
    """Puts it beside the records."""
    (folder / TARGET).write_text(target.model_dump_json(by_alias=True, indent=2) + "\n", encoding="utf-8")


def read_target(folder: Path) -> Target:
    """What `fetch` wrote. Raises UsageError where it did not."""
    path = folder / TARGET
    try:
        return Target.model_validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        raise UsageError(f"{path} is not what `kernelgate fetch` writes: {type(error).__name__}") from None
