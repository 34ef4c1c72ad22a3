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

NOT_STATISTICS = {"timing", "static", "profiling", "template", "measure"}
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
    del written["presets"]
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
    assert policy.load(preset="strict") == strict


def test_the_policy_of_the_current_folder_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".ci").mkdir()
    (tmp_path / ".ci" / "kernelgate.toml").write_text("[gates]\nregression_pct = 5\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert policy.load().gates.regression_pct == 5.0


def test_a_preset_changes_single_keys() -> None:
    text = "[gates]\np = 0.01\n[presets.nightly.gates]\nmargin_pct = 0.5\n[presets.nightly.processes]\nlimit = 9\n"
    nightly = policy.parse(text, preset="nightly")
    assert (nightly.gates.p, nightly.gates.margin_pct, nightly.processes.limit) == (0.01, 0.5, 9)
    assert policy.parse(text).processes.limit == Policy().processes.limit


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("[gates]\nregresion_pct = 3", r"gates\.regresion_pct"),
        ("[gate]\np = 0.1", "gate"),
        ("[gates]\nregression_pct = -1", r"gates\.regression_pct"),
        ("[gates]\nregression_pct = nan", r"gates\.regression_pct"),
        ("[gates]\nimprovement_pct = 100", r"gates\.improvement_pct"),
        ("[certainty]\nalpha = 0", r"certainty\.alpha"),
        ("[processes]\nminimum = 1", r"processes\.minimum"),
        ("[processes]\nto_block = 8", "minimum, to_block and limit"),
        ("[processes]\nlimit = 2", "minimum, to_block and limit"),
        ("gates = 3", "gates"),
        ("presets = 3", "presets must be tables"),
        ("[presets.strict]\ngates = 3", "preset strict.*gates"),
        ("gates = 3\n[presets.strict.gates]\np = 0.01", "gates"),
        ("[template]\nkernel_paths = []", r"template\.kernel_paths"),
        ("[measure]\npaths = []", r"measure\.paths"),
        ("[presets]\nodd = 3\n[presets.strict.gates]\np = 0.01", "presets must be tables"),
        ("[presets.strict.gates]\nregresion_pct = 1", r"preset strict.*gates\.regresion_pct"),
        ("[gates", "not TOML"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(text: str, named: str) -> None:
    with pytest.raises(PolicyError, match=named):
        policy.parse(text)


RANGES: dict[str, tuple[list[object], list[object]]] = {
    "gates.regression_pct": ([1e-9, 1e9], [0, -1, "inf"]),
    "gates.improvement_pct": ([1e-9, 99.9], [0, 100]),
    "gates.p": ([1e-9, 0.999], [0, 1]),
    "gates.cliffs_delta": ([0, 1], [-1e-9, 1.001]),
    "gates.margin_pct": ([1e-9], [0, "inf"]),
    "gates.mean_regression_pct": ([1e-9, 1e9], [0, -1, "inf"]),
    "gates.mean_improvement_pct": ([1e-9, 99.9], [0, 100]),
    "certainty.alpha": ([1e-9, 0.999], [0, 1]),
    "certainty.baseline_alpha": ([1e-9, 0.999], [0, 1]),
    "certainty.equivalence_alpha": ([1e-9, 0.999], [0, 1]),
    "certainty.interval_level": ([1e-9, 0.999], [0, 1]),
    "certainty.power": ([1e-9, 0.999], [0, 1]),
    "certainty.resolution_pct": ([1e-9], [0, "inf"]),
    "certainty.miss": ([1e-9, 0.999], [0, 1]),
    "certainty.spending_shape": ([0, 0.5], [-1e-9, 0.501]),
    "processes.minimum": ([2, 3], [1]),
    "processes.to_block": ([2, 7], [1, 8]),
    "processes.to_direct": ([2, 7], [1, 8]),
    "processes.limit": ([4, 100], [3]),
    "processes.minimum_rounds": ([8], [7]),
    "spread.change_pct": ([1e-9], [0, "inf"]),
    "spread.quiet_factor": ([1.001], [1]),
    "spread.quiet_share": ([1e-9, 0.999], [0, 1]),
    "spread.largest_pct": ([1e-9], [0, "inf"]),
    "spread.prior_cases": ([1], [0]),
    "spread.history_df": ([1e-9], [0, "inf"]),
    "spread.history_share": ([1e-9, 0.999], [0, 1]),
    "spread.history_memory_df": ([1e-9], [0, "inf"]),
    "spread.history_to_direct_df": ([1e-9], [0, "inf"]),
    "spread.level_pct": ([1e-9], [0, "inf"]),
    "spread.level_prior_processes": ([1], [0]),
    "spread.baseline_drift_pct": ([1e-9], [0, "inf"]),
    "spread.baseline_drift_df": ([1], [0]),
    "spread.baseline_days": ([2], [1]),
    "spread.baseline_days_df": ([1], [0]),
    "spread.block_change_pct": ([1e-9], [0, "inf"]),
    "spread.block_bias_pct": ([0], [-1e-9, "inf"]),
    "spread.alternating_bias_pct": ([0], [-1e-9, "inf"]),
    "witness.tolerance_pct": ([1e-9], [0, "inf"]),
    "witness.cpu_tolerance_pct": ([1e-9], [0, "inf"]),
    "witness.cpu_spread_pct": ([1e-9], [0, "inf"]),
    "witness.prior_turns": ([1], [0]),
    "bootstrap.resamples": ([100], [99]),
    "bootstrap.seed": ([0, -1], [0.5]),
    "limits.warn_cv_pct": ([1e-9], [0, "inf"]),
    "limits.throttled_share": ([0, 1], [-1e-9, 1.001]),
    "limits.clock_change_pct": ([1e-9], [0, "inf"]),
    "limits.dependence_p": ([1e-9, 0.999], [0, 1]),
    "limits.dependence_pct": ([0], [-1e-9, "inf"]),
    "limits.carry_over_pct": ([1e-9], [0, "inf"]),
    "limits.side_clock_pct": ([1e-9], [0, "inf"]),
    "limits.distinct_values": ([1], [0]),
    "limits.mode_distance_pct": ([1e-9], [0, "inf"]),
    "limits.mode_share": ([0, 1], [-1e-9, 1.001]),
    "limits.mode_overlap": ([0, 1], [-1e-9, 1.001]),
    "limits.mode_share_p": ([1e-9, 0.999], [0, 1]),
    "limits.drift_pct": ([1e-9], [0, "inf"]),
    "limits.drift_p": ([1e-9, 0.999], [0, 1]),
    "limits.disagree_p": ([1e-9, 0.999], [0, 1]),
    "limits.disagree_pct": ([1e-9], [0, "inf"]),
    "limits.lone_share": ([0, 1], [-1e-9, 1.001]),
    "limits.floor_tolerance": ([0, 1], [-1e-9, 1.001]),
    "limits.shortest_us": ([1e-12], [0]),
    "limits.longest_us": ([1e12], [0]),
    "profiling.timeout_s": ([1e-9], [0, "inf"]),
    "template.claim_tolerance_pct": ([0], [-1e-9, "inf"]),
}
"""What each number may be, at the ends of its range, and what it may not."""


@pytest.mark.parametrize("key", RANGES)
def test_each_number_has_its_range(key: str) -> None:
    section, name = key.split(".")
    legal, illegal = RANGES[key]
    for value in legal:
        assert getattr(getattr(policy.parse(f"[{section}]\n{name} = {value}"), section), name) == value
    for value in illegal:
        with pytest.raises(PolicyError, match=section):
            policy.parse(f"[{section}]\n{name} = {value}")


def test_every_number_that_decides_has_a_range_here() -> None:
    numbers = {
        f"{section}.{key}"
        for section, values in Policy().model_dump().items()
        for key, value in values.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    }
    assert numbers - set(RANGES) == {"limits.warn_temperature_c"}


@pytest.mark.parametrize(
    ("gpus", "named"),
    [
        ([("l4", "8.9"), ("l4", "8.9")], "duplicate GPU label; got l4, l4"),
        ([], "gpus"),
        ([("L4", "8.9")], "label"),
        ([("-l4", "8.9")], "label"),
        ([("l" * 32, "8.9")], "label"),
        ([("l4", "89")], "target"),
        ([(f"gpu{number}", "8.9") for number in range(16)], "gpus"),
    ],
)
def test_gpus_that_do_not_fit_are_refused(gpus: list[tuple[str, str]], named: str) -> None:
    tables = ", ".join(f'{{ label = "{label}", target = "{target}" }}' for label, target in gpus)
    with pytest.raises(PolicyError, match=named):
        policy.parse(f"[measure]\ngpus = [{tables}]")


def test_one_path_is_enough() -> None:
    found = policy.parse('[template]\nkernel_paths = ["k/"]\n[measure]\npaths = ["k/"]')
    assert (found.template.kernel_paths, found.measure.paths) == (("k/",), ("k/",))


def test_as_many_gpus_as_may_be() -> None:
    tables = ", ".join(f'{{ label = "{"l" * 29}{number:02}", target = "10.0" }}' for number in range(15))
    assert len(policy.parse(f"[measure]\ngpus = [{tables}]").measure.gpus) == 15


def test_an_unknown_preset_is_a_usage_error_that_names_the_others() -> None:
    with pytest.raises(UsageError, match="no preset 'lax'; it has: default, strict"):
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
