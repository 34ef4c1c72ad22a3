"""Each check on machines that are fit and machines that are not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import fields, replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from kernelgate.bench import record
from kernelgate.bench.check import fuzz
from kernelgate.bench.core.errors import CannotCompileError, KernelgateError, NoDeviceError
from kernelgate.bench.kernel import cards, commit
from kernelgate.bench.measure import doctor, machine
from kernelgate.bench.measure.machine import Level, MachineCheck
from kernelgate.bench.system.nvml import GpuFacts, Reading
from tests.miniature import SCALE_FILES, repository, write
from tests.processes import program

ROOT = Path(__file__).parents[3]
GPU = GpuFacts("NVIDIA L4", "570.1", Reading(2040, 6251, 45, 30, max_sm_mhz=2040), True, (), 0)
READ = {field.name for field in fields(Reading)}
CPU_TORCH = record.Environment(torch="2.13.0+cpu")


def test_what_a_machine_without_a_gpu_is_fit_for_depends_on_what_is_wanted_and_on_what_it_has(tmp_path: Path) -> None:
    """Nothing of NVIDIA's: the CPU is measured, unless a GPU was wanted. One whose driver is silent: a fault."""
    silent = NoDeviceError("the NVIDIA driver does not respond: Driver Not Loaded")
    check = machine.gpu_absent(tmp_path, silent)
    says(check, Level.WARNING, "this machine has no NVIDIA GPU: the CPU kernel will be measured", check.fix)
    says(machine.gpu_absent(tmp_path, silent, wanted=True), Level.FAILED, "", "")
    for name, vendor in (("0000:00:01.0", "0x8086"), ("0000:00:02.0", "0x10de")):
        write(tmp_path, {f"sys/bus/pci/devices/{name}/vendor": f"{vendor}\n"})
    says(machine.gpu_absent(tmp_path, silent), Level.FAILED, "Driver Not Loaded", "driver")


def of_gpu(root: Path, name: str, user: int = 1000, **changes: Any) -> MachineCheck:
    reading = replace(GPU.reading, **{key: changes.pop(key) for key in list(changes) if key in READ})
    checks = machine.gpu_checks(replace(GPU, reading=reading, **changes), root, user)
    return next(check for check in checks if check.name == name)


def test_a_fit_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, {"usr/local/cuda/bin/ncu": ""})
    monkeypatch.setenv("PATH", "/nowhere")
    checks = list(machine.gpu_checks(GPU, tmp_path, 1000))
    assert {check.level for check in checks} == {Level.PASSED}
    assert all(check.fix is None for check in checks)
    assert checks[0].found == "NVIDIA L4, driver 570.1"


@pytest.mark.parametrize(
    ("name", "changes", "level", "found", "fix"),
    [
        ("persistence mode", {"persistence_mode": False}, Level.WARNING, "off", "nvidia-smi -pm 1"),
        ("other processes", {"process_ids": (7, 8)}, Level.FAILED, "2 on the GPU (7 8)", "ps -fp 7 8"),
        ("throttling", {"throttle_reasons": ("gpu_idle", "hw_thermal_slowdown")}, Level.FAILED, "hw_thermal", "cool"),
        ("throttling", {"throttle_reasons": ("gpu_idle", "applications_clocks_setting")}, Level.PASSED, "none", None),
        ("temperature", {"temperature_c": 81}, Level.FAILED, "81 °C", "cool down"),
        ("temperature", {"temperature_c": 80}, Level.PASSED, "80 °C", None),
        ("memory errors", {"uncorrected_ecc_errors": 3}, Level.FAILED, "3 uncorrected", "reset"),
        ("hardware counters", {}, Level.WARNING, "restricted to root", "NVreg_RestrictProfilingToAdminUsers=0"),
        ("hardware counters", {"user": 0}, Level.PASSED, "open", None),
    ],
)
def test_what_a_gpu_is_not_fit_for(
    tmp_path: Path, name: str, changes: dict[str, Any], level: Level, found: str, fix: str | None
) -> None:
    write(tmp_path, {"proc/driver/nvidia/params": "EnableMSI: 1\nRmProfilingAdminOnly: 1\n"})
    says(of_gpu(tmp_path, name, **changes), level, found, fix)


def test_a_measurement_of_kernelgate_is_waited_for_and_not_terminated(tmp_path: Path) -> None:
    for process in (7, 8):
        write(tmp_path, {f"proc/{process}/cmdline": "python3\0-m\0kernelgate.bench.timing.worker\0"})
    check = of_gpu(tmp_path, "other processes", process_ids=(7, 8))
    says(check, Level.FAILED, "2 on the GPU (7 8)", "wait until this measurement of kernelgate ends")
    (tmp_path / "proc/8/cmdline").write_text("python3\0train.py\0")
    says(of_gpu(tmp_path, "other processes", process_ids=(7, 8)), Level.FAILED, "2 on the GPU", "ps -fp 7 8")


def says(check: MachineCheck, level: Level, found: str, fix: str | None) -> None:
    assert check.level is level
    assert found in check.found
    assert (check.fix is None) == (fix is None)
    assert (fix or "") in (check.fix or "")


@pytest.mark.parametrize(
    ("check", "level", "found", "fix"),
    [
        (machine.disk_check({Path("/a"): 9 << 30, Path("/b"): 1 << 30}), Level.FAILED, "1.0 GiB free in /b", "free"),
        (machine.load_check("1.50 1.00 0.5 1/99 1", 4), Level.WARNING, "1.50", "end what else computes"),
        (machine.isolation_check("bubblewrap is not installed"), Level.WARNING, "not installed", "bubblewrap"),
        (machine.isolation_check(None), Level.PASSED, "kept apart", None),
        (doctor.tool_check("nvcc", KernelgateError("no"), "fails"), Level.WARNING, "no: fails", "cuda-toolkit["),
        (doctor.torch_check(CPU_TORCH, True), Level.FAILED, "torch 2.13.0+cpu does not see the GPU", "built for CUDA"),
        (doctor.tool_check("g++", None, "nothing can"), Level.WARNING, "neither on PATH nor", "apt-get install g++"),
        (doctor.tool_check("ccache", None, "fails"), Level.PASSED, "builds do without it", None),
        (doctor.arch_list_check("sm_89", None), Level.WARNING, "is not a compute capability", "ARCH_LIST=8.9,"),
        (doctor.arch_list_check("8.9", "9.0"), Level.WARNING, "leaves out this machine's GPU", "ARCH_LIST=9.0,"),
        (doctor.arch_list_check("8.9;9.0a", "9.0"), Level.PASSED, "sm_90a", None),
        (doctor.max_jobs_check("0"), Level.WARNING, "'0' is no number of compilers", "MAX_JOBS=4"),
        (doctor.flags_check({"CUDAFLAGS": "-G -g"}), Level.WARNING, "CUDAFLAGS='-G -g': compiled", "unset CUDAFLAGS,"),
        (doctor.flags_check({"HOME": "/root", "CUDAFLAGS": ""}), Level.PASSED, "none is set", None),
        (doctor.ccache_dir_check(f"{__file__}/x"), Level.WARNING, "x cannot be written", "unset CCACHE_DIR"),
    ],
)
def test_what_is_not_fit_says_how_to_fix_it(check: MachineCheck, level: Level, found: str, fix: str | None) -> None:
    says(check, level, found, fix)


def test_the_governor_of_every_core_counts(tmp_path: Path) -> None:
    for core, governor in enumerate(("performance", "powersave")):
        assert machine.governor_check(tmp_path).level is Level.PASSED
        write(tmp_path, {f"sys/devices/system/cpu/cpu{core}/cpufreq/scaling_governor": f"{governor}\n"})
    assert machine.governor_check(tmp_path).level is Level.WARNING


def test_warnings_are_fit_and_failures_are_not() -> None:
    passed, warning, failed = (MachineCheck(level.value, level, "found", "fix it") for level in Level)
    assert machine.fit([passed, warning])
    assert not machine.fit([failed, passed, warning])
    said = machine.report([failed, passed, warning])
    assert said.index("passed:") < said.index("warning:") < said.index("failed:") < said.index("Not fit")
    assert said.count("→ fix it") == 3
    assert machine.report([passed]).endswith("This machine is fit to measure.")


@pytest.mark.slow
def test_the_verb_on_this_machine_without_a_gpu(tmp_path: Path) -> None:
    words = ["-m", "kernelgate.ci.commands.cli", "doctor", "--json", "-o", str(tmp_path / "doctor.json")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, *words], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert "Traceback" not in done.stderr
    told = json.loads(done.stdout)
    assert done.returncode == (0 if told["fit"] else 1)
    names = {one["name"] for one in told["checks"]}
    assert names >= {"GPU", "torch", "disk", "g++", "ninja", "nvcc", "load", "kernels"}
    assert all(one["fix"] for one in told["checks"] if one["level"] != "passed")
    assert json.loads((tmp_path / "doctor.json").read_text(encoding="utf-8")) == told


def test_a_runner_compiles_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_torch() -> record.Environment:
        raise KernelgateError("torch does not start here")

    monkeypatch.setattr(doctor.environment, "describe", no_torch)
    checks = {check.name: check for check in doctor.examine(tmp_path, tmp_path, gpu_wanted=True)}
    says(checks["torch"], Level.FAILED, "torch does not start here", "-m pip install")
    assert "isolation" in checks
    assert not {"g++", "kernels", "nvcc"} & checks.keys()


def test_versions_are_the_tools_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, script in (("right", "echo right 1.2; echo more"), ("wrong", "exit 3")):
        program(tmp_path / name, script)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert doctor.version_of("right") == "right 1.2"
    assert doctor.version_of("nowhere-to-be-found") is None
    broken = doctor.version_of("wrong")
    assert isinstance(broken, KernelgateError)
    assert "does not run" in str(broken)


# A checkout's kernels: one that works, and each way in which one does not

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
    write(repo, {"csrc/scale.cpp": "#error broken\n"})
    check = only(doctor.kernel_checks(repo, MACHINE))
    assert check.level is Level.WARNING
    assert "#error broken" in check.found


def test_a_card_is_tried_on_its_smallest_case_of_the_device_or_on_its_smoke_cases(repo: Path) -> None:
    card = cards.of_checkout(repo)["scale"]
    smoke = card.model_copy(update={"suites": {**card.suites, "smoke": card.suites["pr"][:1]}})
    for device, smallest in (("cpu", "n32_fp32"), ("cuda", "n8_fp32")):
        found = [doctor.smallest_case(one, device) for one in (card, smoke)]  # type: ignore[arg-type]
        assert [case and case.id for case in found] == [smallest, "n64_fp32"]


def test_a_machine_that_cannot_compile_or_load_what_was_compiled(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name, error, level in (
        (fuzz, "try_case", KernelgateError("no torch"), Level.FAILED),
        (commit, "build_card", CannotCompileError("no g++"), Level.WARNING),
    ):
        monkeypatch.setattr(commit, "build_card", Mock())
        monkeypatch.setattr(module, name, Mock(side_effect=error))
        check = only(doctor.kernel_checks(repo, MACHINE))
        assert (check.level, check.found) == (level, str(error))


def test_a_checkout_without_cards_and_no_checkout(tmp_path: Path) -> None:
    empty = repository(tmp_path / "empty", {"README": ""})
    assert "has no cards" in only(doctor.kernel_checks(empty, MACHINE)).found
    assert "none was tried" in only(doctor.kernel_checks(tmp_path, MACHINE)).found
