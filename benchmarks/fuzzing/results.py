"""What came of each bug, as a file that a run goes on with."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from benchmarks.fuzzing.bug import Device
from benchmarks.fuzzing.detectors import DetectorName, DetectorResult

LATENT = Path(__file__).parent.parent / "results" / "fuzzing_latent.json"


class BugResult(BaseModel):
    """One bug on one device."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    bug: str
    """Its id."""
    device: Device
    built: bool = True
    message: str = ""
    """What the compiler said, where it was not built."""
    looks: tuple[DetectorResult, ...] = ()
    """One for each detector that was run."""

    @property
    def caught_by(self) -> DetectorName | None:
        return next((look.detector for look in self.looks if look.caught), None)

    @property
    def undecided(self) -> bool:
        """Whether nothing caught it, and a detector could not tell."""
        return self.caught_by is None and (not self.built or any(look.caught is None for look in self.looks))

    @property
    def seconds(self) -> float:
        """Of all detectors that were run."""
        return sum(look.seconds for look in self.looks)


class BugResults(BaseModel):
    """A run of the program on one machine."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    machine: str
    results: tuple[BugResult, ...] = ()

    def of(self, bug: str, device: Device) -> BugResult | None:
        return next((one for one in self.results if (one.bug, one.device) == (bug, device)), None)

    def holding(self, result: BugResult) -> BugResults:
        """With one result more; it takes the place of an earlier one of the same bug."""
        others = [one for one in self.results if (one.bug, one.device) != (result.bug, result.device)]
        return self.model_copy(update={"results": (*others, result)})


class LatentResult(BaseModel):
    """What the calls of a latent bug showed."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    bug: str
    calls: int
    differing: int
    """Calls of which a bit differed."""
    where: tuple[str, ...] = ()
    """The cases and loads of these."""


class LatentResults(BaseModel):
    """Of all of them, on one machine."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    machine: str
    results: tuple[LatentResult, ...]


def read_latent(path: Path = LATENT) -> Mapping[str, LatentResult]:
    """By bug; empty where nothing was measured yet."""
    if not path.exists():
        return {}
    return {one.bug: one for one in LatentResults.model_validate_json(path.read_bytes()).results}


def read(path: Path) -> BugResults:
    return BugResults.model_validate_json(path.read_bytes())


def write(measured: BugResults, path: Path) -> None:
    """Whole or not at all: a run may be ended at any moment."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}")
    unfinished.write_text(measured.model_dump_json(indent=1) + "\n", encoding="utf-8")
    unfinished.replace(path)
