"""A repository that has kernelgate and no card yet: nothing is measured, and no merge is blocked."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelgate.ci.github.fetch import fetch
from kernelgate.ci.github.plan import NO_CARD, plan, skipped
from kernelgate.ci.github.publish import post
from kernelgate.ci.pipeline import trusted_rules
from tests.ci.desk import Desk
from tests.ci.report_examples import BASE_SHA, HEAD_SHA
from tests.fakes.github_server import event


@pytest.fixture(autouse=True)
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A checkout of a default branch without a card."""
    monkeypatch.chdir(tmp_path)


def test_without_a_card_only_cards_are_watched_and_a_card_that_is_wrong_is_one() -> None:
    rules = trusted_rules.rules(None)
    assert (rules.measure.paths, rules.template.kernel_paths) == ((".ci/kernels/",), (".ci/kernels/",))
    assert skipped(None, (), rules.measure) == NO_CARD, "nor is a change too large to list measured"
    folder = Path(".ci/kernels")
    folder.mkdir(parents=True)
    (folder / "norm.py").write_text("KERNEL = 1\n", "utf-8")
    assert "csrc/" in trusted_rules.rules(None).measure.paths


@pytest.mark.parametrize(
    ("files", "measured"), [(["csrc/k.cu", "setup.py"], False), ([".ci/kernels/norm.py", "csrc/k.cu"], True)]
)
def test_a_pull_request_is_measured_where_it_brings_a_card(desk: Desk, files: list[str], measured: bool) -> None:
    """Else its build would find no kernel, which blocked it."""
    listed = [{"filename": name} for name in files]
    pull = desk.github.open_pull(head_sha=HEAD_SHA, base_sha=BASE_SHA, files=listed, body="")
    payload = event("pull_request.synchronize")
    payload["pull_request"] |= {"number": 1}
    payload["pull_request"]["head"]["sha"] = HEAD_SHA
    desk.told(payload)
    rules = trusted_rules.rules(None)
    found = plan(desk.bot.step, desk.bot, rules.measure)
    assert found.measure is measured
    if measured:
        return
    assert "a card, .ci/kernels/NAME.py, says how one is built, called and compared (https://" in found.reason
    run = desk.github.add_run(pull)
    desk.github.add_job(run, "plan / plan", "success")
    fetch(desk.bot, run["id"], Path("records"))
    assert post(desk.bot, Path("records"), rules) == 0
    [check] = desk.github.checks.values()
    assert check["conclusion"] == "neutral"
    said = check["output"]["title"]
    assert said.startswith("❔ Does not block: not measured: the default branch describes no kernel yet: a card")
    assert "/kernelgate bench" not in check["output"]["summary"], "it is refused"
    assert "`kernelgate cards` checks it" in check["output"]["summary"]
