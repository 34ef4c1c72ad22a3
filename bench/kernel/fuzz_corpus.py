"""Fuzz trials that are kept, a file each, named by what is in it: those that failed, and those nearest to a limit.

CORPUS/CARD/failed/*.json and CORPUS/CARD/near/*.json. Beside the cards, `corpus/` is the repository's own: what is kept
there as failed is tried before everything else, in every pull request.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from kernelgate.bench.core import files
from kernelgate.bench.core.errors import faults
from kernelgate.bench.kernel import fuzz_domain, fuzz_list
from kernelgate.bench.kernel.card import DeviceKind
from kernelgate.bench.kernel.cards import CardFacts
from kernelgate.bench.kernel.fuzz_list import Trial
from kernelgate.bench.system import progress

FOLDER = "corpus"
MAX_BYTES = 20_000
"""Of a file; those that kernelgate writes have a few hundred."""
Group = Literal["failed", "near"]


class KeptTrial(BaseModel):
    """One file of a corpus."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: Annotated[str, Field(max_length=1000)]
    seed: Annotated[int, Field(ge=0, lt=2**63)]
    """Of the run: `kernelgate fuzz --seed SEED --case CARD/ID` repeats it."""
    why: Annotated[str, Field(max_length=10_000)]
    """Its fault, or how near it came to its limit."""
    error_ratio: float | None = None
    """Largest error, as a multiple of what is allowed."""

    @property
    def name(self) -> str:
        """The file's: the same case is kept once."""
        return hashlib.sha256(f"{self.seed}/{self.id}".encode()).hexdigest()[:16] + ".json"


def beside(card: CardFacts) -> Path:
    """The corpus of the repository that the card is in."""
    return card.file.parent / FOLDER


def keep(corpus: Path, card: str, group: Group, kept: KeptTrial) -> Path:
    """Writes the file, whole or not at all. Raises OutputError."""
    path = corpus / card / group / kept.name
    files.write(path, kept.model_dump_json(indent=2) + "\n")
    return path


def read(corpus: Path, card: str, group: Group) -> Iterator[tuple[Path, KeptTrial]]:
    """What is kept, in the order of file names. A file that is none of a corpus is named, and left alone."""
    for path in sorted((corpus / card / group).glob("*.json")):
        try:
            with path.open("rb") as file:
                yield path, KeptTrial.model_validate_json(file.read(MAX_BYTES))
        except OSError as error:
            progress.say(f"{path} is left out: {error.strerror}")
        except ValidationError as error:
            progress.say(f"{path} is left out: it is no kept case: {faults(error)}")


def failures(corpus: Path, card: CardFacts, device: DeviceKind) -> tuple[Trial, ...]:
    """The trials that are kept because they failed."""
    return tuple(trials((kept for _, kept in read(corpus, card.name, "failed")), card, device))


def trials(kept: Iterable[KeptTrial], card: CardFacts, device: DeviceKind) -> Iterator[Trial]:
    """As trials; those of another device, or of axes that the card no longer has, are left out."""
    for one in kept:
        listed = {trial.id: trial for trial in fuzz_list.trials(one.seed, card, device)}
        trial = listed.get(one.id) or fuzz_domain.parse(one.seed, card, device, one.id)
        if trial is not None:
            yield trial
