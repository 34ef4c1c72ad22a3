"""What reads bytes that somebody else made: each returns, or raises an error that says in a sentence what is wrong.

`tests/fuzzing/corpus/<reader>` keeps inputs of each: `honest_…`, which are read, and `found_…`, which once were a
fault, or reach what no other does.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from pydantic import ValidationError

from kernelgate.bench import record
from kernelgate.bench.build import library
from kernelgate.bench.core.errors import KernelgateError
from kernelgate.bench.explain import ncu_reader
from kernelgate.bench.kernel import cards
from kernelgate.ci.document import render
from kernelgate.ci.github import assemble, claims, command, description, plan
from kernelgate.ci.github import untrusted_artifact as artifact
from kernelgate.ci.github.actions import Step
from kernelgate.ci.github.client import Bot, GitHubError
from kernelgate.ci.github.fetch import RunInfo
from kernelgate.ci.policy import policy
from kernelgate.ci.policy.policy import Measure, Policy, Template
from kernelgate.ci.report.page import write as write_page

CORPUS = Path(__file__).parent / "corpus"
MAX_BYTES = 64 * 1024
"""Of an input that is made up. GitHub keeps as many characters of a description."""
SLOW_S = 5
"""Of the processor's time: what takes longer to read is a fault."""
MAX_SENTENCE = 4000
HEAD = "b" * 40
KNOWN = record.Run(repository="o/r", pull_request=7, head_sha=HEAD, base_sha="a" * 40, run_id=77, run_attempt=1)
"""What GitHub says of the run whose records are in the corpus."""


class Silent:
    """A GitHub that answers nothing: what a verb wants to know beyond the event, it does not learn."""

    full_name = "o/r"

    def __getattr__(self, name: str) -> Any:
        raise GitHubError("nothing is asked of GitHub here")


def read_record(data: bytes) -> None:
    found = artifact.checked_record(data, KNOWN)
    assert record.from_json(record.to_json(found)) == found


def read_report(data: bytes) -> None:
    """What is accepted is also judged, and written out: one record must not keep the report from being posted."""
    with tempfile.TemporaryDirectory() as folder:
        record.write(artifact.checked_record(data, KNOWN), Path(folder) / "l4.run.json")
        info = RunInfo(run=KNOWN, run_url="https://github.com/o/r/actions/runs/77", gpus=("l4",))
        posting = assemble.assemble(Path(folder), info, Policy())
    render.comment(posting.report)
    write_page(posting, Policy().gates)


def read_archive(data: bytes) -> None:
    for name, content in artifact.members(data).items():
        (read_record if name == artifact.RECORD else artifact.checked_failure)(content)


def read_description(data: bytes) -> None:
    text = data.decode("utf-8", "replace")
    described = description.describe(text, Template(), ["csrc/kernel.cu"])
    assert len(described.claims) <= claims.MAX_CLAIMS
    assert all(line.isprintable() for line in description.as_text(described).split("\n"))


def read_command(data: bytes) -> None:
    asked = command.parse(data.decode("utf-8", "replace"))
    if asked is not None and not asked.fault:
        assert asked.verb in command.VERBS
        assert all(plan.CASE.fullmatch(case) for case in asked.cases)


def read_event(data: bytes) -> None:
    """As every verb does that reads one, as far as it gets without GitHub."""
    with tempfile.TemporaryDirectory() as folder, redirect_stdout(StringIO()):
        file = Path(folder) / "event.json"
        file.write_bytes(data)
        environment = {"GITHUB_EVENT_PATH": str(file), "GITHUB_EVENT_NAME": "pull_request", "GITHUB_SHA": HEAD}
        step = Step(environment | {"GITHUB_OUTPUT": str(Path(folder) / "outputs")})
        bot = cast(Bot, SimpleNamespace(repository=Silent(), step=step, sleep=lambda _: None))
        step.event()
        _in_a_sentence(lambda: plan.plan(step, bot, Measure()))
        _in_a_sentence(lambda: plan.admit(bot, step, HEAD))
        _in_a_sentence(lambda: description.of_file_or_event(step, Template(), None))
        _in_a_sentence(lambda: command.answer(step, bot, Measure()))


def read_cards(data: bytes) -> None:
    try:
        said = cards.CardsAnswer.model_validate_json(data)
    except ValidationError:  # no message, and so nobody's cards
        return
    found = cards.Cards(Path("cards"), said.cards)
    cards.paths(found)
    cards.planned(found, processes=5)


def of_file(name: str, read: Callable[[Path], object]) -> Callable[[bytes], None]:
    def reader(data: bytes) -> None:
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / name).write_bytes(data)
            read(Path(folder) / name)

    return reader


READERS: Mapping[str, Callable[[bytes], object]] = {
    "record": read_record,
    "report": read_report,
    "failure": artifact.checked_failure,
    "archive": read_archive,
    "description": read_description,
    "command": read_command,
    "event": read_event,
    "policy": lambda data: policy.parse(data.decode("utf-8", "replace")),
    "manifest": of_file(library.MANIFEST, lambda file: library.build_record(library.read(file.parent), "head")),
    "cards": read_cards,
    "profile": of_file("profile.ncu-rep", ncu_reader.read),
}


def check(name: str, data: bytes) -> None:
    """Raises AssertionError where reading takes too long, or what is refused is not refused in a sentence; and
    whatever the reader raises that is no refusal."""
    began = time.process_time()
    _in_a_sentence(lambda: READERS[name](data))
    took = time.process_time() - began
    if took > SLOW_S:
        raise AssertionError(f"took {took:.1f} s")


def _in_a_sentence(read: Callable[[], object]) -> None:
    try:
        read()
    except KernelgateError as error:
        said = str(error)
        if not said.isprintable() or len(said) > MAX_SENTENCE:
            raise AssertionError(f"not a sentence that can be shown: {said!r}") from error
