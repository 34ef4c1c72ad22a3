"""A record that a kernel had in its hands, on its way to become the baseline: the same door as every other record's."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt

from kernelgate.bench import record
from kernelgate.ci.commands.cli import run as kernelgate
from kernelgate.ci.github.baseline_pr import refresh
from kernelgate.ci.github.untrusted_artifact import MAX_MEMBER, RefusedError
from kernelgate.ci.policy.policy import Policy
from tests.ci.desk import Desk
from tests.ci.report_examples import EXAMPLES, HEAD_SHA

OTHER = "e" * 40
EVIL = "@octocat [x](https://evil.test) <img src=x onerror=alert(1)> ::set-output name=a::b ##[error]x"


@pytest.fixture
def rules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Policy:
    monkeypatch.chdir(tmp_path)
    return Policy.model_validate({"measure": {"gpus": [{"label": "l4", "target": "8.9", "baseline": "stored.json"}]}})


def content(**run: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(record.to_json(EXAMPLES["faster"]().record))
    found["run"] = {"head_sha": HEAD_SHA, "created_at": "2026-11-20T10:00:00Z"} | run
    found["builds"] = [build | {"sha": HEAD_SHA} for build in found["builds"] if build["side"] == "head"]
    return found


def offered(desk: Desk, rules: Policy, data: bytes) -> int | None:
    Path("run.json").write_bytes(data)
    return refresh(desk.bot, Path("run.json"), "l4", rules, force=True)


FORGED: dict[str, tuple[Callable[[], bytes], str]] = {
    "another commit": (lambda: json.dumps(content(head_sha=OTHER)).encode(), "another commit"),
    "Markdown for a commit": (lambda: json.dumps(content(head_sha=f"]({EVIL}")).encode(), "refused"),
    "no commit": (lambda: json.dumps(content(head_sha=None)).encode(), "which commit it measured"),
    "another repository": (lambda: json.dumps(content(repository="mallory/kernels")).encode(), "another repository"),
    "another run": (lambda: json.dumps(content(run_id=78)).encode(), "another run"),
    "a pull request": (lambda: json.dumps(content(pull_request=1)).encode(), "names pull request 1"),
    "another GPU": (lambda: json.dumps(content(gpu="h100")).encode(), "another GPU"),
    "a base": (lambda: json.dumps(content(base_sha=OTHER)).encode(), "has a base"),
    "a key twice": (lambda: b'{"run": {}, ' + json.dumps(content()).encode()[1:], "'run' stands twice"),
    "NaN": (lambda: json.dumps(content() | {"cases": float("nan")}).encode(), "not a JSON number"),
    "too large": (lambda: b" " * (MAX_MEMBER["run.json"] + 1), "bytes"),
    "no JSON": (lambda: b"\xff\xfe", "not JSON"),
}


@pytest.mark.parametrize(("made", "said"), FORGED.values(), ids=FORGED.keys())
def test_a_forged_record_is_no_baseline(desk: Desk, rules: Policy, made: Callable[[], bytes], said: str) -> None:
    with pytest.raises(RefusedError, match=said):
        offered(desk, rules, made())
    assert desk.github.writes() == []


def test_the_commit_is_the_runs(desk: Desk, rules: Policy) -> None:
    number = offered(desk, rules, json.dumps(content()).encode())
    assert f"The default branch at {HEAD_SHA} was measured" in (desk.github.pulls[number or 0].body or "")
    assert {said.body["sha"] for said in desk.github.requests if said.path.endswith("/git/refs")} == {HEAD_SHA}


@pytest.mark.usefixtures("rules")
def test_a_key_is_no_order_to_the_runner(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Neither in the log nor in an error."""
    for name, value in desk.bot.step.environment.items():
        monkeypatch.setenv(name, value)
    twice = json.dumps("\n::set-output name=pull_request::1\n##[error]x")
    Path("run.json").write_text(f"{{{twice}: 1, {twice}: 2}}", "utf-8")
    assert kernelgate(["step", "baseline", "--record", "run.json", "--label", "l4"]) == 3
    printed = capsys.readouterr()
    said = printed.out + printed.err
    assert "stands twice" in said
    assert "::" not in said
    assert "##[" not in said


def test_no_text_of_a_record_is_markdown_in_the_pull_request(desk: Desk, rules: Policy) -> None:
    """Not even with a stored baseline, whose comparison is the evidence."""
    Path("stored.json").write_text(json.dumps(content()), "utf-8")
    forged = content()
    forged["notes"] = [{"text": EVIL}]
    forged["environments"][0]["host"] = EVIL
    forged["environments"][0]["device"]["name"] = EVIL
    number = offered(desk, rules, json.dumps(forged).encode())
    body = desk.github.pulls[number or 0].body or ""
    parsed = MarkdownIt("commonmark").enable("table").parse(body)
    inner = [child for token in parsed for child in token.children or ()]
    links = [str(child.attrs["href"]) for child in inner if child.type == "link_open"]
    assert all(link.startswith("https://github.com/octo-org/kernels/actions/runs/") for link in links), links
    assert not [child for child in inner if child.type == "image" or "html" in child.type]
    assert "@octocat" not in "".join(child.content for child in inner if child.type == "text")
