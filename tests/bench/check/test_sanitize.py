"""compute-sanitizer's findings, from what it really said of the planted faults in tests/gpu/kernels/sanitize."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kernelgate.bench import record
from kernelgate.bench.build.library import Sides
from kernelgate.bench.check import sanitize
from kernelgate.bench.check.sanitize import SanitizerOptions
from kernelgate.bench.core.errors import KernelgateError, NoDeviceError
from kernelgate.bench.core.hardware import Capability
from kernelgate.bench.kernel import watched_call
from kernelgate.bench.kernel.watched_call import DONE, WarmProcesses
from kernelgate.bench.record import CheckFinding, KernelFacts
from tests import faulty, sanitized
from tests.processes import program

LOGS = Path(__file__).parents[2] / "data" / "sanitize"

PLANTED = {
    "memcheck": ("Invalid __global__ write of size 4 bytes", "write_past_the_end(float *, int)", "out_of_bounds.cu", 7),
    "racecheck": ("Race reported at a write", "read_the_neighbour(float *)", "race.cu", 6),
    "initcheck": ("Uninitialized __global__ memory read of size 4 bytes", "sum_unwritten(const float *, float *)",
                  "uninitialised.cu", 4),
    "synccheck": ("Barrier error detected. Divergent thread(s) in warp", "meet_alone(float *)",
                  "divergent_barrier.cu", 8),
}  # fmt: skip


@pytest.mark.parametrize(("tool", "expected"), PLANTED.items(), ids=PLANTED)
def test_each_planted_fault_is_named_with_kernel_and_line(tool: str, expected: tuple[str, str, str, int]) -> None:
    (found,) = sanitize.parse(tool, (LOGS / f"{tool}.log").read_text(encoding="utf-8").splitlines())
    assert (found.text, found.kernel, found.file, found.line) == expected
    assert found.tool == tool


def test_equal_findings_are_one_and_one_without_a_line_still_names_its_kernel() -> None:
    (found,) = sanitize.parse("initcheck", (LOGS / "initcheck.log").read_text(encoding="utf-8").splitlines())
    assert found.times == 100
    lines = ["========= Invalid __global__ read of size 16 bytes", "=========     at k(float *)+0x40"]
    assert sanitize.parse("memcheck", lines) == (
        CheckFinding(tool="memcheck", text="Invalid __global__ read of size 16 bytes", kernel="k(float *)"),
    )


def test_a_tool_that_cannot_look_says_why(tmp_path: Path) -> None:
    refuses = "echo '========= Error: Device not supported.'; echo '=========  '; exit 1"
    script = program(tmp_path / "compute-sanitizer", refuses)
    with pytest.raises(KernelgateError, match="memcheck exited with 1; last line: Error: Device not supported"):
        sanitized.program(script, "memcheck", ["true"])


GPU = (8, 9)
H200 = (9, 0)
CASES = sanitize.of_card(faulty.card())
ASKED = SanitizerOptions(("memcheck", "racecheck"), cases=CASES)
SIDES = ("the_base", "the_head")
PTX = ("csrc/mma_sync/ptx.cuh", "csrc/wgmma/ptx.cuh")
SOURCES = {"sm_89": ("csrc/other.cu", "csrc/race.cu", PTX[0]), "sm_90a": ("csrc/hopper/race.cu", *PTX)}


def all_done(then: str = "") -> str:
    return f"echo '{DONE}'; echo '{DONE}'; {then}"


def finds(name: str) -> str:
    return all_done(f"cat {LOGS / name}.log; exit 7")


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> Sides:
    kernels = (KernelFacts(target="sm_89", name="read_the_neighbour"), KernelFacts(target="sm_90a", name="another"))
    folder = tmp_path_factory.mktemp("sanitized")
    made = (
        faulty.build(folder / name, f"sanitized_{name}", targets=tuple(SOURCES), sources=SOURCES, kernels=kernels)
        for name in SIDES
    )
    return Sides(*made)


class Tools:
    """A compute-sanitizer that waits for its turn and then does what it is told; else a tool is clean."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, libraries: Sides) -> None:
        self.folder, self.monkeypatch, self.both = folder, monkeypatch, libraries
        self.alone = Sides(None, libraries.head)

    def do(self, **by_tool: str) -> None:
        does = {"memcheck": all_done(), "racecheck": all_done()} | by_tool
        cases = "".join(f"{name})\n{body}\n;;\n" for name, body in does.items())
        body = (
            f'for word; do last="$word"; done; echo "$2" >> {self.folder / "started"}\n'
            'exec 3< "$last"; read -r ahead <&3; read -r asked <&3\n'
            f'echo "$2 $PYTORCH_NO_CUDA_MEMORY_CACHING $asked" >> {self.folder / "said"}\ncase $2 in\n{cases}esac'
        )
        script = program(self.folder / "compute-sanitizer", body)
        self.monkeypatch.setattr(sanitize.cuda_tools, "find", lambda _: script)

    def check(
        self, sides: Sides | None = None, started: WarmProcesses | None = None, gpu: Capability = GPU, **asked: Any
    ) -> record.Check:
        return sanitize.check(faulty.card(), sides or self.alone, gpu, replace(ASKED, **asked), started)

    @property
    def said(self) -> list[list[str]]:
        """The tool, what keeps torch's pools off, and what was asked, of each process."""
        return [line.split(" ", 2) for line in (self.folder / "said").read_text().splitlines()]

    @property
    def sizes(self) -> list[list[int]]:
        return [[case["S"] for case in json.loads(words[2])["cases"]] for words in self.said]


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, libraries: Sides) -> Tools:
    return Tools(tmp_path, monkeypatch, libraries)


def test_each_tool_runs_every_case_in_one_process(tools: Tools) -> None:
    tools.do()
    done = tools.check(tools.both)
    assert not [words for words in tools.said if "/the_base" in words[2]], "only where something is found"
    assert (done.status, done.asked, done.run, done.failed, done.reason) == ("passed", 4, 4, 0, None)
    assert (done.tools, done.cases) == (ASKED.tools, tuple(case.id for case in CASES))
    assert sorted(words[0] for words in tools.said) == ["memcheck", "racecheck"]
    assert {words[1] for words in tools.said} == {"1"}, "in torch's pools nobody sees an access past a tensor's end"
    assert tools.sizes == [[65, 129]] * 2
    assert sanitize.exit_code([done]) == 0


def test_what_is_found_has_its_kernel_file_and_line(tools: Tools) -> None:
    tools.do(racecheck=finds("racecheck"))
    done = tools.check()
    (found,) = done.findings
    assert (found.tool, found.kernel, found.file, found.line) == ("racecheck", "read_the_neighbour", "csrc/race.cu", 6)
    assert (done.status, done.failed, done.run, found.on_base) == ("failed", 1, 4, None)
    assert sanitize.exit_code([done]) == 1


def finding(file: str | None, kernel: str = "read_the_neighbour(float *)", line: int = 6) -> CheckFinding:
    return CheckFinding(tool="racecheck", text="Race", kernel=kernel, file=file, line=line)


@pytest.mark.parametrize(
    ("found", "gpu", "paths"),
    [
        (finding("race.cu"), GPU, ("csrc/race.cu",)),
        (finding("race.cu"), H200, ("csrc/hopper/race.cu",)),
        (finding("ptx.cuh"), H200, PTX),
        (finding(None), GPU, ()),
    ],
)
def test_the_file_is_one_that_the_code_of_this_gpu_was_compiled_from(
    libraries: Sides, found: CheckFinding, gpu: Capability, paths: tuple[str, ...]
) -> None:
    assert sanitize.sources_of(found, libraries.head, gpu) == paths


def test_a_file_name_that_the_commit_has_twice_has_no_place(tools: Tools) -> None:
    """What racecheck said on an H200 of a missing __syncthreads: it names the function, not the kernel."""
    tools.do(racecheck=finds("racecheck_in_function"))
    (found,) = tools.check(gpu=H200).findings
    assert (found.kernel, found.file, found.line, found.times) == ("cp_async", None, None, 2)
    assert found.text == "Race reported at a write (ptx.cuh:17)"


@pytest.mark.parametrize(
    ("does", "run", "said"),
    [
        (f"echo '{DONE}'; echo RuntimeError: no; exit 1", 3, "exited with 1 in the case s129_b2_h1_d64_bf16_causal"),
        ("kill -SEGV $$", 2, "racecheck exited with -11 in the case s65_b1_h2_d64_fp16; last line: nothing"),
        (all_done("echo '========= ERROR SUMMARY: 2 errors'; exit 7"), 3, "found something that it did not describe"),
        ("exit 0", 2, "racecheck exited with 0 in the case"),
        (None, 0, "memcheck exited with 1"),
    ],
    ids=["refused", "crashed", "undescribed", "silent", "nothing ran"],
)
def test_what_did_not_come_to_its_end_is_no_pass(tools: Tools, does: str | None, run: int, said: str) -> None:
    tools.do(**({"racecheck": does} if does else {"memcheck": "exit 1", "racecheck": "exit 1"}))
    done = tools.check()
    assert (done.status, done.asked, done.run) == ("passed" if run else "skipped", 4, run)
    assert said in (done.reason or "")
    assert sanitize.exit_code([done]) == 3


def test_a_tool_that_takes_too_long_is_ended_with_its_last_words(tools: Tools) -> None:
    tools.monkeypatch.setattr(sanitize, "STARTING_S", 0.0)
    tools.monkeypatch.setattr(watched_call, "LOADING_S", 1.0)
    tools.do(racecheck=f"echo '{DONE}'; echo stuck here; sleep 60")
    done = tools.check(tools=("racecheck",), seconds=1.0)
    assert (done.status, done.asked, done.run) == ("passed", 2, 1)
    assert done.reason == (
        "racecheck was stopped after 1 s in the case s129_b2_h1_d64_bf16_causal; last line: stuck here"
    )


def test_without_named_cases_it_is_the_smallest_that_is_timed_or_a_fuzzed_one_where_that_is_large() -> None:
    card = faulty.card().model_copy(update={"sanitize": ()})
    (smallest,) = sanitize.of_card(card)
    assert smallest.bytes == min(case.bytes or 0 for case in card.suites["pr"])
    assert sanitize.of_card(card.model_copy(update={"suites": {"pr": (), "cpu": card.suites["cpu"]}})) == ()
    large = tuple(case.model_copy(update={"bytes": 1e9}) for case in card.suites["pr"])
    (watched,) = sanitize.of_card(card.model_copy(update={"suites": {**card.suites, "pr": large}}))
    assert watched not in large
    assert 2**16 < (watched.bytes or 0.0) <= sanitize.MOST_BYTES, "the largest of those that are small: loops go round"


def test_tools_that_were_started_before_are_taken(tools: Tools) -> None:
    tools.do()
    card = faulty.card()
    with sanitize.started(card, tools.alone.head, ASKED.tools) as ready:
        assert tools.check(started=ready[card.name]).run == 4
    assert len((tools.folder / "started").read_text().splitlines()) == len(ASKED.tools)
    assert tools.check().run == 4
    assert len((tools.folder / "started").read_text().splitlines()) == 2 * len(ASKED.tools), "of its own"


def test_a_machine_without_the_sanitizer_starts_nothing(monkeypatch: pytest.MonkeyPatch, libraries: Sides) -> None:
    def absent(name: str) -> Path:
        raise NoDeviceError(f"{name} is not here")

    monkeypatch.setattr(sanitize.cuda_tools, "find", absent)
    with sanitize.started(faulty.card(), libraries.head, ASKED.tools) as ready:
        assert ready == {}


@pytest.mark.parametrize(
    ("of_base", "known"),
    [
        (finds("racecheck"), True),
        (all_done(), False),
        ("exit 1", None),
        (f"cat {LOGS / 'racecheck.log'}; exit 7", True),
    ],
)
def test_whether_the_base_has_it_too(tools: Tools, of_base: str, known: bool | None) -> None:
    """What could not be looked at is not known; what was found there is, however that ended."""
    tools.do(racecheck=f'case "$asked" in */the_base*) {of_base} ;; *) {finds("racecheck")} ;; esac')
    done = tools.check(tools.both)
    assert [one.on_base for one in done.findings] == [known]
    assert ("of the base: racecheck exited with" in (done.reason or "")) == (DONE not in of_base)


def test_a_second_fault_of_a_kernel_is_not_the_bases() -> None:
    before = [finding("race.cu", line=6)]
    moved, other = finding("race.cu", line=9), finding("race.cu", line=20)
    assert sanitize.known_to([moved], before) == [True]
    assert sanitize.known_to([other, finding("race.cu", line=6)], before) == [False, True]
    assert sanitize.known_to([finding("race.cu", "another(int)")], before) == [False]
