"""The workflows and composite actions of this repository, read once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
HOME_REPOSITORY = "kernelgate/kernelgate"


@dataclass(frozen=True)
class Workflow:
    path: str
    """From the repository's root, as `uses:` writes it."""
    text: str

    @cached_property
    def content(self) -> dict[str, Any]:
        parsed = yaml.load(self.text, yaml.CSafeLoader)
        # YAML 1.1 reads the key `on` as true.
        return {"on" if key is True else key: value for key, value in parsed.items()}

    @property
    def triggers(self) -> dict[str, Any]:
        on = self.content["on"]
        return on if isinstance(on, dict) else dict.fromkeys([on] if isinstance(on, str) else on)

    @property
    def jobs(self) -> dict[str, dict[str, Any]]:
        return self.content["jobs"]


def workflows(root: Path = ROOT) -> dict[str, Workflow]:
    """By file name without its end, such as "measure"."""
    files = sorted((root / ".github/workflows").glob("*.yml"))
    return {file.stem: Workflow(str(file.relative_to(root)), file.read_text("utf-8")) for file in files}


def actions(root: Path = ROOT) -> dict[str, Workflow]:
    files = sorted((root / ".github/actions").glob("*/action.yml"))
    return {file.parent.name: Workflow(str(file.relative_to(root)), file.read_text("utf-8")) for file in files}


def steps(content: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """(job id, step) of a workflow, in order; a composite action's steps under the id "runs"."""
    for name, job in content.get("jobs", {"runs": content.get("runs")}).items():
        yield from ((name, step) for step in job.get("steps", ()))


def texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from texts(each)
