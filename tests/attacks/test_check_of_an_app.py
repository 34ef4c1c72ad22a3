"""The check of a GitHub App of one's own: a job of the pull request cannot be taken for it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from kernelgate.ci.commands.cli import run as kernelgate
from kernelgate.ci.github.check_run import CHECK_NAME, CheckRun, put_check
from kernelgate.ci.github.upsert import Stamp
from tests.ci.desk import Desk
from tests.ci.github.test_publish import l4, measured
from tests.ci.report_examples import HEAD_SHA
from tests.workflows.documents import ROOT

INSTALL = (ROOT / "docs/install.md").read_text("utf-8")


def test_a_check_run_of_somebody_else_is_not_ours(desk: Desk) -> None:
    """With our name and our mark, of a run far in the future: it neither stops our verdict nor is it edited."""
    desk.github.login = "mallorys-app[bot]"
    desk.bot.repository.create_check_run(
        CHECK_NAME, HEAD_SHA, external_id="kernelgate:999999.1", status="completed", conclusion="success"
    )
    desk.github.login = "github-actions[bot]"
    done = put_check(desk.bot, CheckRun("failure", "Slower", "Why."), Stamp(HEAD_SHA, 5, 1))
    assert (done.outcome, done.left) == ("created", False)
    forged, ours = (desk.github.checks[key] for key in sorted(desk.github.checks))
    assert (forged["conclusion"], ours["conclusion"]) == ("success", "failure")


def test_the_apps_token_posts(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = measured(desk, tmp_path, l4("slower"))
    desk.github.token, desk.github.login = "ghs_of_the_app", "our-kernelgate[bot]"
    for name, value in desk.bot.step.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("KERNELGATE_BOT", "our-kernelgate[bot]")
    monkeypatch.setenv("KERNELGATE_REPORT_TOKEN", "ghs_of_the_app")
    assert kernelgate(["report", "--from", str(folder), "--post"]) == 0
    [check] = desk.github.checks.values()
    assert check["app"]["slug"] == "our-kernelgate"
    assert "ghs_of_the_app" not in capsys.readouterr().out


def test_the_install_page_hands_the_verb_what_it_reads() -> None:
    [block] = re.findall(r"```yaml\n(.*?)```", INSTALL, re.DOTALL)
    steps = yaml.safe_load(block)
    assert re.fullmatch(r"actions/create-github-app-token@[0-9a-f]{40}", steps[0]["uses"])
    shipped = yaml.safe_load((ROOT / ".github/workflows/report.yml").read_text("utf-8"))
    assert steps[-1]["run"] == shipped["jobs"]["report"]["steps"][-1]["run"]
    tokens = {"KERNELGATE_REPORT_TOKEN", "KERNELGATE_STEP_ACCEPT_TOKEN"}
    assert set(steps[-1]["env"]) == {*tokens, "KERNELGATE_BOT"}
    names = [one.get("name") for one in shipped["jobs"]["report"]["steps"]]
    assert {"accept", "fetch"} < set(names), "the page names them"
