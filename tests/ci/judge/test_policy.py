"""The policy: the file and the defaults agree, and what does not fit is refused by name."""

from __future__ import annotations

import re
import tomllib
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from kernelgate.bench.errors import UsageError
from kernelgate.ci.judge import policy
from kernelgate.ci.judge.policy import Policy, PolicyError

NOT_STATISTICS = {"static", "profiling", "template", "measure"}
"""Sections that the page on statistics leaves to others."""
FILE = Path(__file__).parents[3] / ".ci" / "kernelgate.toml"


def keys(content: dict[str, Any], path: str = "") -> set[str]:
    found = set()
    for key, value in content.items():
        found |= keys(value, f"{path}{key}.") if isinstance(value, dict) else {f"{path}{key}"}
    return found


def test_the_file_says_what_the_defaults_say() -> None:
    assert policy.load(FILE) == Policy()


def test_the_file_names_every_number_that_decides() -> None:
    written = tomllib.loads(FILE.read_text(encoding="utf-8"))
    del written["profiles"]
    assert keys(written) == keys(Policy().model_dump())


def test_every_number_in_the_file_has_its_reason() -> None:
    lines = FILE.read_text(encoding="utf-8").splitlines()
    bare = [
        line
        for above, line in pairwise(lines)
        if "=" in line and not line.startswith("#") and not above.startswith("#") and "=" not in above
    ]
    assert bare == []


def test_strict_blocks_at_one_percent_and_changes_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    strict = policy.load(FILE, "strict")
    assert strict.gates.regression_pct == 1.0
    default = Policy()
    assert strict == default.model_copy(update={"gates": default.gates.model_copy(update={"regression_pct": 1.0})})
    monkeypatch.chdir(tmp_path)
    assert policy.load() == default
    assert policy.load(profile="strict") == strict


def test_the_policy_of_the_current_folder_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".ci").mkdir()
    (tmp_path / ".ci" / "kernelgate.toml").write_text("[gates]\nregression_pct = 5\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert policy.load().gates.regression_pct == 5.0


def test_a_profile_changes_single_keys() -> None:
    text = "[gates]\np = 0.01\n[profiles.nightly.gates]\nmargin_pct = 0.5\n[profiles.nightly.launches]\nlimit = 9\n"
    nightly = policy.parse(text, profile="nightly")
    assert (nightly.gates.p, nightly.gates.margin_pct, nightly.launches.limit) == (0.01, 0.5, 9)
    assert policy.parse(text).launches.limit == Policy().launches.limit


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("[gates]\nregresion_pct = 3", r"gates\.regresion_pct"),
        ("[gate]\np = 0.1", "gate"),
        ("[gates]\nregression_pct = -1", r"gates\.regression_pct"),
        ("[gates]\nregression_pct = nan", r"gates\.regression_pct"),
        ("[gates]\nimprovement_pct = 100", r"gates\.improvement_pct"),
        ("[certainty]\nalpha = 0", r"certainty\.alpha"),
        ("[launches]\nminimum = 1", r"launches\.minimum"),
        ("[launches]\nto_block = 6", "minimum, to_block and limit"),
        ("[launches]\nlimit = 2", "minimum, to_block and limit"),
        ("gates = 3", "gates"),
        ("profiles = 3", "profiles must be tables"),
        ("[profiles.strict.gates]\nregresion_pct = 1", r"profile strict.*gates\.regresion_pct"),
        ("[gates", "not TOML"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(text: str, named: str) -> None:
    with pytest.raises(PolicyError, match=named):
        policy.parse(text)


def test_an_unknown_profile_is_a_usage_error_that_names_the_others() -> None:
    with pytest.raises(UsageError, match="no profile 'lax'; it has: default, strict"):
        policy.load(FILE, "lax")


def test_a_policy_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match=r"missing\.toml"):
        policy.load(tmp_path / "missing.toml")


def test_the_page_on_statistics_gives_the_same_numbers() -> None:
    page = (FILE.parent.parent / "docs" / "statistics.md").read_text(encoding="utf-8")
    given = dict(re.findall(r"^\| `(\w+\.\w+)` \| (.*) \|$", page, flags=re.MULTILINE))
    decided = {
        f"{section}.{key}": ", ".join(value) if isinstance(value, tuple) else f"{value:.12g}"
        for section, values in Policy().model_dump(exclude=NOT_STATISTICS).items()
        for key, value in values.items()
    }
    assert given == decided
