"""A checkout's kernels as doctor tries them: one that works, and each way in which one does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelgate.bench import record
from kernelgate.bench.check import fuzz
from kernelgate.bench.core.errors import CannotCompileError, KernelgateError
from kernelgate.bench.kernel import cards, commit
from kernelgate.bench.kernel.cards import CardFacts
from kernelgate.bench.measure import doctor
from kernelgate.bench.measure.machine import Level, MachineCheck
from tests.miniature import SCALE_FILES, repository

MACHINE = record.Environment(torch="2.13.0+cpu", device=record.Device(name="a CPU", uuid="doctor"))
SIZES = '    cases = [dict(N=64, dtype="fp32"), dict(N=8, dtype="fp32")]\n    cpu_cases = [dict(N=32, dtype="fp32")]\n'
CARD = SCALE_FILES[".ci/kernels/scale.py"].replace('    cases = [dict(N=64, dtype="fp32")]\n', SIZES)
FILES = {**SCALE_FILES, ".ci/kernels/scale.py": CARD}


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return repository(tmp_path / "repo", FILES)


def only(checks: list[MachineCheck]) -> MachineCheck:
    (check,) = checks
    assert (check.level is Level.PASSED) == (check.fix is None)
    return check


@pytest.mark.slow
@pytest.mark.usefixtures("cache")
def test_a_kernel_that_works_and_one_that_is_wrong(repo: Path) -> None:
    assert only(doctor.kernel_checks(repo, MACHINE)).found == "compiles, loads, and is right on n32_fp32"
    source = repo / "csrc" / "scale.cpp"
    source.write_text(source.read_text(encoding="utf-8").replace("= factor *", "= 2 * factor *"), encoding="utf-8")
    check = only(doctor.kernel_checks(repo, MACHINE))
    assert check.level is Level.FAILED
    assert check.found.startswith("n32_fp32: ")


@pytest.mark.slow
@pytest.mark.usefixtures("cache")
def test_a_kernel_that_does_not_compile_is_not_the_machines_fault(repo: Path) -> None:
    (repo / "csrc" / "scale.cpp").write_text("#error broken\n", encoding="utf-8")
    check = only(doctor.kernel_checks(repo, MACHINE))
    assert check.level is Level.WARNING
    assert "#error broken" in check.found


def test_a_card_is_tried_on_its_smallest_case_of_the_device_or_on_its_smoke_cases(repo: Path) -> None:
    card = cards.of_checkout(repo)["scale"]
    smoke = card.model_copy(update={"suites": {**card.suites, "smoke": card.suites["pr"][:1]}})
    for device, smallest in (("cpu", "n32_fp32"), ("cuda", "n8_fp32")):
        found = [doctor.smallest_case(one, device) for one in (card, smoke)]  # type: ignore[arg-type]
        assert [case and case.id for case in found] == [smallest, "n64_fp32"]


@pytest.mark.parametrize(
    ("raised", "level"), [(CannotCompileError("no g++"), Level.WARNING), (KernelgateError("no torch"), Level.FAILED)]
)
def test_a_machine_that_cannot(
    repo: Path, monkeypatch: pytest.MonkeyPatch, raised: KernelgateError, level: Level
) -> None:
    """Compile, or load what was compiled."""

    def refuse(*_: object) -> None:
        raise raised

    monkeypatch.setattr(commit, "build_card", refuse if level is Level.WARNING else lambda *_: None)
    monkeypatch.setattr(fuzz, "try_case", refuse)
    check = only(doctor.kernel_checks(repo, MACHINE))
    assert (check.level, check.found) == (level, str(raised))


def test_a_kernel_without_cases_for_this_machine_is_compiled(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    card = cards.of_checkout(repo)["scale"]
    without: CardFacts = card.model_copy(update={"suites": {**card.suites, "cpu": ()}})
    monkeypatch.setattr(commit, "build_card", lambda *_: None)
    found = doctor.kernel_check(repo, without, MACHINE).found
    assert found == "compiles; the card scale has no cases for a machine without a GPU"


def test_a_checkout_without_cards_and_no_checkout(tmp_path: Path) -> None:
    empty = repository(tmp_path / "empty", {"README": ""})
    assert "has no cards" in only(doctor.kernel_checks(empty, MACHINE)).found
    assert "none was tried" in only(doctor.kernel_checks(tmp_path, MACHINE)).found
