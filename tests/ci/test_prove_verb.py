"""`kernelgate prove` against GitHubs that keep their promises, and that break one; and the beginning of `demo`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kernelgate.ci.commands import setup
from kernelgate.ci.github import prove
from kernelgate.ci.github.upsert import Stamp, state_line
from tests.called import EndsWith
from tests.fakes.github_server import FakeGitHub
from tests.miniature import write
from tests.workflows.documents import ROOT

REPOSITORY = "octo-org/kernels"
EVERY = prove.read(ROOT / prove.FILE)
YES = ["prove", "--repo", REPOSITORY, "--yes"]
HONEST = {
    "faster": ("### ✅ 41% faster on the L4", "success", "performance: improved"),
    "slower": ("### ❌ Blocks: 52% slower on the L4", "failure", "performance: regressed"),
    "equal": ("### ✅ No regression: no change on the L4", "success", "performance: unchanged"),
    "wrong": ("### ❌ Blocks: wrong result on the L4", "failure", ""),
    "cheating": ("### ❌ Blocks: wrong result on the L4", "failure", ""),
    "profile": ("### ✅ Profiled: `s512`", "", ""),
}
PAGE = "# Real commits\n\n<!-- promises: begin -->\n|promise|CPU|\n|---|---|\n<!-- promises: end -->\n\nMore.\n"


@pytest.fixture
def hub(signed_in: FakeGitHub, monkeypatch: pytest.MonkeyPatch) -> FakeGitHub:
    """A fork of kernelgate: in a checkout of it, with a token that may do all of this."""
    signed_in.permissions |= {"actions": "write"}
    for path in EVERY.files:
        signed_in.files["main", path] = (ROOT / path).read_bytes()
    Path(".ci").mkdir()
    prove.FILE.write_bytes((ROOT / prove.FILE).read_bytes())
    monkeypatch.setattr(prove, "POLL_S", 0.01)
    return signed_in


def answering(hub: FakeGitHub, **other: tuple[str, str, str]) -> None:
    """As soon as the profile is dispatched, every workflow has ended, and said this."""

    def answer() -> None:
        for pull in [one for one in hub.pulls.values() if one.state == "open"]:
            name = pull.head_ref.removeprefix(prove.BRANCHES)
            line, conclusion, label = (HONEST | other)[name]
            stamp = Stamp(pull.head_sha, 7, 1)
            hub.comment(pull.number, f"{line}\n\nMore.\n{state_line('verdict', stamp)}")
            facts = {"name": "kernelgate verdict", "head_sha": pull.head_sha, "completed_at": hub.now}
            hub.add_check(status="completed", conclusion=conclusion, **facts)
            pull.labels = [label] if label else []
            if name == prove.PROFILED and "profile" not in other:
                hub.comment(pull.number, f"{HONEST['profile'][0]}\n{state_line('profile', stamp)}")

    hub.fault("POST", ".*/dispatches", headers={"X-Answered": "yes"}, after=answer)


def test_an_honest_github_keeps_every_promise_and_the_page_says_so(hub: FakeGitHub, ends_with: EndsWith) -> None:
    answering(hub)
    Path("proof.md").write_text(PAGE, encoding="utf-8")
    assert "6 promises kept, 0 broken" in ends_with(0, *YES, "--page", "proof.md").out
    record = json.loads(Path("proof-github.json").read_text(encoding="utf-8"))
    assert [one["name"] for one in record["promises"]] == list(HONEST)
    page = Path("proof.md").read_text(encoding="utf-8")
    assert page.count("|kept, 20") == page.count("([record](proof-github.json))") == 6
    assert page.count(prove.EMPTY) == 6 * 4, "what was not run stays visible"
    assert page.startswith("# Real commits\n")
    assert page.endswith("More.\n")
    each_has_its_change_and_a_base_that_leaves_a_gain(hub)
    writes = hub.writes()
    ends_with(0, *YES)
    assert hub.writes() == writes, "what is open is looked at again"


def each_has_its_change_and_a_base_that_leaves_a_gain(hub: FakeGitHub) -> None:
    assert {pull.base_ref for pull in hub.pulls.values()} == {prove.BASE}
    for path in EVERY.files:
        honest = (ROOT / path).read_bytes()
        touched = any(one.file == path for one in EVERY.begin)
        assert (hub.files[prove.BASE, path] == honest) != touched
        assert hub.files[f"{prove.BRANCHES}faster", path] == honest, "it takes the base's fault back"
        assert hub.files["main", path] == honest
    for name in EVERY.pulls:
        kept = [hub.files[f"{prove.BRANCHES}{name}", path] != hub.files[prove.BASE, path] for path in EVERY.files]
        assert any(kept), name
    slower = next(one.number for one in hub.pulls.values() if one.head_ref.endswith("slower"))
    assert hub.dispatches == [("profile.yml", {"ref": "main", "inputs": {"pull-request": str(slower), "gpu": "l4"}})]


WRONG = {
    "faster": ((*HONEST["faster"][:2], "performance: unchanged"), "performance: unchanged"),
    "slower": ((HONEST["slower"][0], "success", HONEST["slower"][2]), "the check: success"),
    "equal": (("### ❌ Blocks: 52% slower on the L4", "success", "performance: unchanged"), "52% slower"),
    "cheating": (HONEST["faster"], "41% faster"),
}


@pytest.mark.slow
def test_a_github_that_answers_wrongly_is_reported(hub: FakeGitHub, ends_with: EndsWith) -> None:
    """By the label, the check, the words, or all of them."""
    answering(hub, **{name: instead for name, (instead, _) in WRONG.items()})
    Path("proof.md").write_text(PAGE, encoding="utf-8")
    printed = ends_with(1, *YES, "--page", "proof.md")
    assert f"2 promises kept, 4 broken: {', '.join(WRONG)}" in printed.out
    rows = [line for line in Path("proof.md").read_text("utf-8").splitlines() if "**broken**" in line]
    for (name, (_, said)), row in zip(WRONG.items(), rows, strict=True):
        assert said in printed.err.split(f"BROKEN: {EVERY.pulls[name].promise}\n")[1].splitlines()[0]
        assert row.startswith(f"|{EVERY.pulls[name].promise}|")


@pytest.mark.slow
def test_a_doubt_that_lasts_and_what_never_comes_are_broken_and_a_doubt_that_passes_is_waited_for(
    hub: FakeGitHub, ends_with: EndsWith
) -> None:
    answering(hub, equal=("### ⚠️ Cannot tell", "action_required", ""), profile=("", "", ""))
    assert "2 broken: equal, profile" in ends_with(1, *YES, "--wait", "0.001").out
    [held] = [one for one in hub.checks.values() if one["conclusion"] == "action_required"]
    [pull] = [one for one in hub.pulls.values() if one.head_ref.endswith("equal")]
    line, conclusion, label = HONEST["equal"]

    def again() -> None:
        hub.comment(pull.number, f"{line}\n{state_line('verdict', Stamp(pull.head_sha, 8, 1))}")
        held["conclusion"], pull.labels = conclusion, [label]

    hub.fault("GET", f"/commits/{pull.head_sha}/check-runs", skip=1, headers={"X-Answered": "yes"}, before=again)
    assert "1 broken: profile" in ends_with(1, *YES, "--wait", "0.01").out


def test_undo_leaves_nothing_and_without_a_yes_nothing_is_done(hub: FakeGitHub, ends_with: EndsWith) -> None:
    other = hub.open_pull(head_ref="somebodys")
    assert "open kernelgate-prove/slower" in ends_with(2, "prove", "--repo", REPOSITORY).err
    assert hub.writes() == []
    answering(hub, somebodys=HONEST["equal"])
    ends_with(0, *YES)
    undo = ["prove", "--repo", REPOSITORY, "--undo"]
    ends_with(2, *undo)
    assert any(one.state == "open" for one in hub.pulls.values() if one is not other)
    ends_with(0, *undo, "--yes")
    assert set(hub.refs) == {"heads/main"}
    assert [one for one in hub.pulls.values() if one.state == "open"] == [other]
    assert "nothing to do" in ends_with(0, *undo, "--yes").out


def test_another_kernel_is_refused_before_anything_is_opened(hub: FakeGitHub, ends_with: EndsWith) -> None:
    path = EVERY.files[0]
    hub.files["main", path] = b"another kernel"
    assert f"{path} has " in ends_with(3, *YES).err
    assert hub.writes() == []
    prove.FILE.write_text("pulls = 3", encoding="utf-8")
    ends_with(64, *YES)
    Path("page.md").write_text("no table", encoding="utf-8")
    prove.FILE.write_bytes((ROOT / prove.FILE).read_bytes())
    assert "no table" in ends_with(64, *YES, "--page", "page.md").err


def test_demo_ends_as_what_it_runs_and_without_a_clone_says_where_that_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ends_with: EndsWith
) -> None:
    monkeypatch.setattr(setup, "ROOT", tmp_path)
    assert "clone it, run `make env` there, then `make demo`" in ends_with(64, "demo").err
    for code in (0, 11):
        write(tmp_path, {"tests/__init__.py": "", "tests/demo/__main__.py": f"raise SystemExit({code})"})
        ends_with(code, "demo")
