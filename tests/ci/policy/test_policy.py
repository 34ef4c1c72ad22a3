"""The policy: the file and the defaults agree, and what does not fit is refused by name."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kernelgate.bench.core.errors import KernelgateError, UsageError
from kernelgate.ci.policy import policy
from kernelgate.ci.policy.policy import Policy

FILE = Path(__file__).parents[3] / ".ci" / "kernelgate.toml"


def test_an_editors_mark_before_the_first_line_and_its_line_ends_are_no_fault(tmp_path: Path) -> None:
    (tmp_path / "policy.toml").write_bytes(b"\xef\xbb\xbf[gates]\r\nregression_pct = 2\r\n")
    assert policy.load(tmp_path / "policy.toml").gates.regression_pct == 2.0


def test_strict_blocks_at_one_percent_and_changes_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    strict, own = policy.load(FILE, "strict"), policy.load(FILE)
    assert strict.gates.regression_pct == 1.0
    assert strict.model_copy(update={"gates": own.gates}) == own
    monkeypatch.chdir(tmp_path)
    assert policy.load() == Policy()
    gates = strict.gates.model_copy(update={"above_memory_max": "ignore"})
    assert policy.load(preset="strict") == strict.model_copy(update={"gates": gates, "costs": Policy().costs})


def test_a_preset_changes_single_keys() -> None:
    text = "[gates]\nregression_pct = 2\n[presets.nightly]\ngates = {margin_pct = 0.5}\nprocesses = {limit = 9}\n"
    nightly = policy.parse(text, preset="nightly")
    assert (nightly.gates.regression_pct, nightly.gates.margin_pct, nightly.processes.limit) == (2, 0.5, 9)
    assert policy.parse(text).processes.limit == Policy().processes.limit


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("[gates]\nregresion_pct = 3", r"gates\.regresion_pct"),
        ("[gate]\nregression_pct = 1", "gate"),
        ("presets = 3", "presets must be tables"),
        ("[presets.strict]\ngates = 3", "preset strict.*gates"),
        ("gates = 3\n[presets.strict.gates]\np = 0.01", "gates"),
        ("[template]\nkernel_paths = []", r"template\.kernel_paths"),
        ("[measure]\npaths = []", r"measure\.paths"),
        ("[presets.strict.gates]\nregresion_pct = 1", r"preset strict.*gates\.regresion_pct"),
        ("[gates", "not TOML"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(text: str, named: str) -> None:
    with pytest.raises(KernelgateError, match=named):
        policy.parse(text)


RANGES: dict[str, tuple[float, float]] = {
    "gates.regression_pct": (0.001, 1000.0),
    "gates.improvement_pct": (0.001, 99.9),
    "gates.margin_pct": (0.001, 1000.0),
    "gates.mean_regression_pct": (0.001, 1000.0),
    "gates.mean_improvement_pct": (0.001, 99.9),
    "gates.reference_min": (1e-06, 1.0),
    "gates.memory_max": (1e-06, 1000000.0),
    "certainty.alpha": (1e-12, 0.5),
    "processes.minimum": (2, 32),
    "processes.to_block": (2, 32),
    "processes.limit": (4, 32),
    "fuzz.gpu_limit_s": (1.0, 86400.0),
    "sanitizer.seconds": (1.0, 3600.0),
    "agents.gpu_seconds": (0.0, 1e7),
    "changes.gpu_seconds_a_night": (0.0, 86400.0),
}
"""What each number may be; whole where both ends are."""


def refused(text: str) -> str:
    try:
        policy.parse(text, "the file")
    except KernelgateError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("key", RANGES)
def test_each_number_has_its_range(key: str) -> None:
    section, name = key.split(".")
    low, high = RANGES[key]
    whole = isinstance(low, int)
    for value in (low, high):  # which another number may contradict
        assert "input should be" not in refused(f"[{section}]\n{name} = {value}")
    below, above = (low - 1, high + 1) if whole else (low * 0.9 or -1e-9, high * 1.001)
    for value in (below, above, "nan", "true", "'3'", *(["4.5"] if whole else [])):
        message = refused(f"[{section}]\n{name} = {value}")
        assert message.startswith(f"the file does not fit: {key} is "), (value, message)
        assert ": input should be " in message


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[gates]\nmargin_pct = 5", "gates: margin_pct (5) must not be above regression_pct (3)"),
        ("[gates]\nimprovement_pct = 0.5", "gates: margin_pct (1) must not be above improvement_pct (0.5)"),
        ("[processes]\nminimum = 4", "processes: minimum (4) must not be above to_block (3)"),
        ("[processes]\nto_block = 8", "processes: to_block (8) must not be above limit (7)"),
        (
            "[gates]\nmargin_pct = 0.1\nregression_pct = 0.3",
            "gates: a gate (0.3) must not be below what is measured to (0.4)",
        ),
    ],
)
def test_what_contradicts_itself_is_refused(text: str, said: str) -> None:
    assert refused(text) == f"the file does not fit: {said}"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[" * 5000, "is not TOML: "),
        ("[gates]\nmargin_pct = " + "1" * 5000, "is not TOML: Exceeds the limit (4300 digits)"),
        ("[gates]\nmargin_pct = 1\nmargin_pct = 2", "is not TOML: Cannot overwrite a value (at end of document)"),
        ("\x00", "is not TOML: "),
        ("{}", "is not TOML: "),
        ("[timing]\nlock_clocks = 1", "timing.lock_clocks is 1: "),
        ("[timing]\nlock_clocks = 'yes'", "timing.lock_clocks is 'yes': "),
        ("[static]\nnew_spills = 'perhaps'", "static.new_spills is 'perhaps': "),
        ("[measure]\npaths = 'csrc'", "measure.paths is 'csrc': "),
        ("[measure]\npaths = [1]", "measure.paths.0 is 1: "),
        ("a = " + "[" * 3000, "is not TOML: "),
        ('[measure]\nenvironment = "a\\u0000b"', "measure.environment is 'a\\x00b': "),
    ],
    ids=lambda text: text[:20],
)
def test_what_is_no_policy_is_refused_in_a_sentence(text: str, said: str) -> None:
    assert said in refused(text)
    assert "\n" not in refused(text)


@pytest.mark.parametrize(
    ("gpus", "named"),
    [
        ([("l4", "8.9"), ("l4", "8.9")], "duplicate GPU label; got l4, l4"),
        ([], "gpus"),
        ([("L4", "8.9")], "label"),
        ([("l" * 32, "8.9")], "label"),
        ([("l4", "89")], "target"),
        ([(f"gpu{number}", "8.9") for number in range(16)], "gpus"),
    ],
)
def test_gpus_that_do_not_fit_are_refused(gpus: list[tuple[str, str]], named: str) -> None:
    tables = ", ".join(f'{{ label = "{label}", target = "{target}" }}' for label, target in gpus)
    with pytest.raises(KernelgateError, match=named):
        policy.parse(f"[measure]\ngpus = [{tables}]")


def test_an_unknown_preset_is_a_usage_error_that_names_the_others() -> None:
    with pytest.raises(UsageError, match="no preset 'lax'; it has: default, strict"):
        policy.load(FILE, "lax")


def test_a_policy_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "binary.toml").write_bytes(b"\xff\x00")
    for name, said in (("missing.toml", "No such file"), ("", "Is a directory"), ("binary.toml", "can't decode")):
        with pytest.raises(KernelgateError, match=f"{name}: the policy cannot be read: .*{said}"):
            policy.load(tmp_path / name)


def test_a_policy_that_leads_nowhere_is_not_the_built_in_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / ".ci" / "kernelgate.toml"
    place.parent.mkdir()
    place.symlink_to("gone")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(KernelgateError, match="cannot be read"):
        policy.load()
    place.unlink()
    os.mkfifo(place)
    with pytest.raises(KernelgateError, match="cannot be read: it is a named pipe"):
        policy.load()
