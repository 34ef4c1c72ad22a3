"""The mark `kernelgate` of pytest: is a kernel of the project slower, or wrong, against another commit?"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

MARK = "kernelgate"


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", f"{MARK}(base, cards=None): compares the working tree's kernels with a commit's")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> None:
    if mark := item.get_closest_marker(MARK):
        with TemporaryDirectory(prefix="kernelgate-pytest-") as out:
            compare(item.config.rootpath, Path(out), *mark.args, **mark.kwargs)


def compare(root: Path, out: Path, base: str = "origin/main", cards: str | Path | None = None) -> None:
    """The working tree against the commit `base`, with the cards of a folder, else the repository's own. The test fails
    where a case is certainly slower, wrong, or does not compile, and is skipped where that cannot be judged."""
    __tracebackhide__ = True
    # Here, since this module is loaded wherever pytest starts beside kernelgate.
    from kernelgate.bench.core.errors import KernelgateError
    from kernelgate.bench.system import git
    from kernelgate.ci.document import render
    from kernelgate.ci.judge.case import CERTAIN, Outcome
    from kernelgate.ci.pipeline import local
    from kernelgate.ci.policy import policy

    try:
        repo = git.root(root)
        git.resolve(repo, base)
    except KernelgateError as error:  # a name that is wrong must not look like a kernel that is right
        pytest.fail(str(error), pytrace=False)
    try:
        file, folder = repo / policy.POLICY_FILE, (root / cards).absolute() if cards else None
        asked = local.Compare(repo, base, cards=folder)
        result = local.run(asked, out, policy.load(file if file.exists() else None))
    except KernelgateError as error:
        pytest.skip(str(error))
    said = "\n".join(map(render.plain_line, (result.report.headline, result.report.summary)))
    outcome = result.verdict.verdict if result.verdict else Outcome.REGRESSED
    if result.decision.blocks or outcome in (Outcome.REGRESSED, Outcome.SLOWER):
        pytest.fail(said, pytrace=False)
    if outcome not in CERTAIN:
        pytest.skip(said)
