"""The runner's files and log: text from strangers has no power over them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kernelgate.bench.core.errors import CardError, KernelgateError, NoDeviceError, NoKernelError, UsageError
from kernelgate.ci.commands.cli import run as kernelgate
from kernelgate.ci.github import untrusted_artifact
from kernelgate.ci.github.actions import Step
from kernelgate.ci.github.untrusted_artifact import checked_failure


@pytest.mark.parametrize("value", ["a\nb=1", "a\rb", "a\u2028b", "a\n"])
def test_an_output_cannot_bring_another(tmp_path: Path, value: str) -> None:
    step = Step({"GITHUB_OUTPUT": str(tmp_path / "out")})
    with pytest.raises(UsageError, match="line breaks"):
        step.output(name=value)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("text", ["x\n::stop-commands::t", "x ##[error]y", "a\u2028::error::b"])
def test_the_log_gives_no_commands(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    step = Step({"GITHUB_ACTIONS": "true", "GITHUB_TOKEN": "s3cret"})
    step.log(f"{text} s3cret")
    step.warn(f"{text} s3cret %0A")
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2
    assert lines[0].startswith("kernelgate: ")
    assert lines[1].startswith("::warning title=kernelgate::")
    assert "::" not in lines[0]
    assert lines[1].count("::") == 2
    assert not any("##[" in line or "s3cret" in line or "%0A" in line for line in lines)


@pytest.mark.parametrize("content", [None, "{", "[]"])
def test_an_event_that_is_none_is_named(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "event.json"
    if content is not None:
        path.write_text(content, encoding="utf-8")
    with pytest.raises(UsageError, match=r"event\.json: the event"):
        Step({"GITHUB_EVENT_PATH": str(path)}).event()
    with pytest.raises(UsageError, match="GITHUB_EVENT_PATH is not set"):
        Step({}).event()


@pytest.mark.parametrize(
    ("payload", "place"),
    [
        ([], "the file"),
        ({"pull_request": 1.5}, "pull_request"),
        ({"pull_request": {"number": 7, "head": {"repo": None}}}, "pull_request.head.sha"),
        ({"pull_request": {"number": -(1 << 63), "head": {"sha": "a"}}}, "pull_request.number"),
        ({"pull_request": {"number": 7, "head": {"sha": "a"}, "body": ["x"]}}, "pull_request.body"),
        ({"comment": {"id": 1, "created_at": "2026-01-02T03:04:05"}}, "comment.created_at"),
        ({"inputs": "ref"}, "inputs"),
    ],
    ids=["list", "number", "no commit", "below zero", "no text", "no time zone", "no inputs"],
)
def test_an_event_of_another_form_is_refused_and_the_place_named(payload: object, place: str, tmp_path: Path) -> None:
    path = tmp_path / "event.json"
    path.write_text(json.dumps(payload), encoding="utf-8")
    with pytest.raises(UsageError) as refused:
        Step({"GITHUB_EVENT_PATH": str(path)}).event()
    assert str(refused.value).startswith(f"{path}: the event is not one of GitHub's: {place}: ")
    assert str(refused.value).isprintable()


MISTAKE = CardError(".ci/kernels/norm.py", 3, "cases", "there are none")
"""In the commit's own card where it is compiled, and in the default branch's where it is measured."""


@pytest.mark.parametrize(
    ("error", "verb", "fault"),
    [
        (NoKernelError("csrc/ is empty"), "bench", "build"),
        (NoDeviceError("no GPU"), "bench", "runner"),
        (MISTAKE, "build", "build"),
        (MISTAKE, "bench", "ours"),
    ],
)
def test_a_failure_is_written_for_the_report(tmp_path: Path, error: KernelgateError, verb: str, fault: str) -> None:
    path = tmp_path / "new" / "failure.json"
    untrusted_artifact.note(error, verb, {"KERNELGATE_FAILURE": str(path)})
    found = checked_failure(path.read_bytes())
    assert (found.fault, found.verb) == (fault, verb)
    untrusted_artifact.note(KernelgateError("second"), verb, {"KERNELGATE_FAILURE": str(path)})
    assert checked_failure(path.read_bytes()) == found, "the first failure stays"


def test_a_command_that_fails_leaves_its_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNELGATE_FAILURE", str(tmp_path / "f.json"))
    assert kernelgate(["template", str(tmp_path / "nowhere.md")]) == 3
    assert "nowhere.md" in checked_failure((tmp_path / "f.json").read_bytes()).message
