"""Descriptions as people write them: what is there is found, what is missing is named, what is claimed is read."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelgate.ci.commands.cli import run as kernelgate
from kernelgate.ci.github.description import ASKED, Part, describe
from kernelgate.ci.policy.policy import Template
from tests.ci.desk import Desk
from tests.ci.github.test_publish import BODY
from tests.fakes.github_server import event

RULES = Template()
KERNEL = ["csrc/fa_s512_sm80.cuh"]
ROOT = Path(__file__).parents[3]
FILLED = BODY.format(claim="- s512_b32_h8_d64_fp16: 10% faster")


def missing(body: str | None, files: list[str] | None = None) -> list[str]:
    return [one.part.name for one in describe(body, RULES, files or KERNEL).missing]


VARIATIONS = {
    "CRLF": lambda text: text.replace("\n", "\r\n"),
    "no space behind the sign": lambda text: text.replace("## ", "##"),
    "links": lambda text: text.replace("## Profiler evidence", "## [Profiler](https://x.test/a_b) evidence"),
    "another order": lambda text: "\n".join(reversed(["## " + part for part in text.split("## ") if part])),
    "comments": lambda text: text.replace("Registers", "<!-- why? -->Registers<!-- so\nthere -->"),
    "quoted in a fence": lambda text: text + "\n```\n## Intent and hypothesis\n\n```\n",
}


@pytest.mark.parametrize("change", VARIATIONS.values(), ids=VARIATIONS.keys())
def test_a_complete_description_is_complete_however_it_is_written(change: object) -> None:
    body = change(FILLED)  # type: ignore[operator]
    assert missing(body) == []
    assert len(describe(body, RULES, KERNEL).claims) == 1


def test_the_template_itself_asks_for_everything_and_claims_nothing() -> None:
    said = describe((ROOT / ".github" / "pull_request_template.md").read_text(encoding="utf-8"), RULES, KERNEL)
    assert [one.part for one in said.missing] == list(ASKED)
    assert {one.why for one in said.missing} == {"is empty"}
    assert (said.claims, said.unread) == ((), ())


def test_what_a_policy_ignores_is_neither_missing_nor_claimed() -> None:
    assert describe("thanks", Template(sections="ignore"), KERNEL).missing == ()
    assert describe(FILLED, Template(claims="ignore"), KERNEL).claims == ()


def test_what_the_bot_wrote_is_no_claim_and_no_hypothesis() -> None:
    words = "<!-- kernelgate-results -->\n\n10% faster\n\n<!-- /kernelgate-results 0123456789abcdef -->"
    said = describe(f"## Intent and hypothesis\n{words}\n## Claimed effect\n{words}\n- S=512: 5% faster", RULES, KERNEL)
    assert [claim.text for claim in said.claims] == ["S=512: 5% faster"]
    assert Part.HYPOTHESIS in [one.part for one in said.missing]


@pytest.mark.parametrize("filler", ["", "TODO", "- ", "_No response_"])
def test_fillers_are_no_answer(filler: str) -> None:
    body = FILLED.replace("Registers limit occupancy.", filler)
    [one] = describe(body, RULES, KERNEL).missing
    assert (one.part, one.why, one.blocks) == (Part.HYPOTHESIS, "is empty", True)


def test_a_huge_description_is_read_to_its_end() -> None:
    """GitHub keeps 65,536 characters; a pattern that tries every way to divide them takes hours."""
    for line in ("# x" + " " * 60_000 + "x", "." * 65_000 + "x", "**" * 30_000, "_" * 60_000 + "x", "[" * 65_000):
        assert missing(FILLED + line) == []
    for body in ("[" * 100_000, "<!--" * 25_000, "*" * 100_000, "a_" * 50_000, "1%" * 50_000, "\n" * 100_000):
        for text in (body, "## Claimed effect\n" + body):
            assert describe(text, RULES, KERNEL).missing


@pytest.mark.parametrize(("body", "code"), [("", 1), (FILLED.replace("## Profiler evidence", ""), 0)])
def test_the_verb_reads_a_file(tmp_path: Path, body: str, code: int, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "body.md"
    path.write_text(body, encoding="utf-8")
    assert kernelgate(["template", str(path)]) == code
    said = capsys.readouterr().out
    assert ("must be added" in said) == bool(code)
    assert "left to the measurement" in said


@pytest.mark.parametrize(
    ("file", "kind", "code"), [("csrc/a.cu", "User", 1), ("csrc/a.cu", "Bot", 0), ("a", "User", 0)]
)
def test_the_verb_reads_the_event(desk: Desk, monkeypatch: pytest.MonkeyPatch, file: str, kind: str, code: int) -> None:
    pull = desk.github.open_pull(files=[{"filename": file}])
    payload = event("pull_request.opened")
    payload["pull_request"] |= {"number": pull.number, "body": "@octocat ```\n::error::x"}
    payload["pull_request"]["user"]["type"] = kind
    desk.told(payload)
    for name, value in desk.bot.step.environment.items():
        monkeypatch.setenv(name, value)
    assert kernelgate(["template"]) == code
    assert desk.summary.startswith("### The pull request's description\n\n```text\n")
