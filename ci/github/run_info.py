"""What GitHub itself says of a workflow run: `kernelgate fetch` writes it, `kernelgate report --from` goes by it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import ConfigDict, Field, ValidationError

from kernelgate.bench.core import files
from kernelgate.bench.core.errors import UsageError
from kernelgate.bench.record import Model, Run
from kernelgate.ci.github.acceptances import KeptAcceptance
from kernelgate.ci.judge.gate import Acceptance

FILE = "run-info.json"


class Job(Model):
    """A job of the run, how it ended, and the step where it stopped."""

    name: str
    conclusion: str
    step: str | None = None


class SeenPull(Model):
    """What the API says of the pull request."""

    body: str | None = None
    by_bot: bool
    labels: tuple[str, ...]
    names: tuple[str, ...] | None = None
    """Every path that it touches, a renamed file's old one too; None where GitHub does not list them all."""
    patches: tuple[tuple[str, str], ...]
    """Path and patch of each file that GitHub lists."""


class RunInfo(Model):
    """Which run this is, and what became of its jobs; everything here comes from the API."""

    schema_: Annotated[Literal["kernelgate.run-info/1"], Field(alias="schema")] = "kernelgate.run-info/1"
    run: Run
    """The identity that every record of the run must have. `base_sha` is what the head is compared with, of a pull
    request its merge base; none where the head was measured alone."""
    run_url: str
    told: tuple[int, int] | None = None
    """Id and attempt of the run that began or ended. Where it was to measure nothing, `run` is the one before."""
    pull: SeenPull | None = None
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
    gpus: tuple[str, ...] = ()
    """The labels that jobs measured, as the plan of the run has them."""
    measured: bool = True
    """Whether a job that builds or measures was started at all."""
    planned: bool = True
    """Whether the run decided what is to be measured: without a decision, missing records prove nothing."""
    under_way: bool = False
    """The measurement goes on, in this run or a newer one, or waits to be approved; its end is reported by itself."""
    begun: bool = False
    """The run itself was requested, or waits to be approved, and nothing is known of it yet."""
    accepted: tuple[KeptAcceptance, ...] = ()
    """What was accepted of the commit, the oldest first."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_by_name=True, validate_by_alias=True)

    @property
    def head_sha(self) -> str:
        return self.run.head_sha or ""

    @property
    def acceptances(self) -> tuple[Acceptance, ...]:
        """For the gate; of several of one case the newest."""
        every = [one for kept in self.accepted for one in kept.of(self.head_sha)]
        return tuple({(one.case, one.base_sha): one for one in every}.values())

    @property
    def pull_request(self) -> int | None:
        return self.run.pull_request


def write_run_info(info: RunInfo, folder: Path) -> None:
    """Puts it beside the records."""
    text = info.model_dump_json(by_alias=True, indent=2, exclude_none=True)
    files.write(folder / FILE, text + "\n")


def read_run_info(folder: Path) -> RunInfo:
    """What `fetch` wrote. Raises UsageError where it did not."""
    path = folder / FILE
    try:
        return RunInfo.model_validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        raise UsageError(f"{path} is not what `kernelgate fetch` writes: {type(error).__name__}") from None
