"""Nothing is judged twice: what is tested here is what becomes of a verdict."""

from __future__ import annotations

import pytest

from kernelgate.ci.github import assemble, baseline_pr
from tests.attacks.honest import judged_once


@pytest.fixture(autouse=True)
def judge_once(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (assemble, baseline_pr):
        monkeypatch.setattr(module, "judge", judged_once)
