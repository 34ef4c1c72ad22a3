"""Which cases are watched: what a case launches is made up here; asking torch's profiler takes a GPU."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kernelgate.bench.build.library import Library, Manifest
from kernelgate.bench.check import sanitize
from kernelgate.bench.check.sanitize import LaunchedKernels, Reach
from kernelgate.bench.core.hardware import Capability
from kernelgate.bench.kernel import fuzz_trials
from kernelgate.bench.kernel.watched_call import WatchedCall
from kernelgate.bench.record import KernelFacts
from kernelgate.bench.system.worker import Ready, WorkerError, WorkerPool
from tests import faulty

CARD = faulty.card()
OWN = [case.id for case in CARD.sanitize]
L4: Capability = (8, 9)
KERNELS = ("attention<0, false>", "attention<1, true>")
RAW = {"attention<0, false>": "void ns::attention<(ns::Dtype)0, false>(ns::Arguments, float)"}


def library(*names: str, target: str = "sm_89", kind: str = "extension", **fields: object) -> Library:
    kernels = tuple(KernelFacts(target=target, name=name) for name in names)
    made = {"card": "attention", "kind": kind, "targets": ("sm_89", "sm_90a"), "kernels": kernels}
    return Library(Path("library"), Manifest.model_construct(**made, **{"facts_missing": None, **fields}), cached=True)


class FakeWorker:
    """Says that it is ready, answers for one case after the other with what `launches` gives; then it is gone."""

    def __init__(self, launches: Sequence[Sequence[str]]) -> None:
        self.answers = list(launches)
        self.asked: list[dict[str, Any]] = []

    def ask(self, request: WatchedCall, _kind: type[Ready], patience_s: float) -> Ready:  # noqa: ARG002
        self.asked = [dict(case) for case in request.cases]
        return Ready()

    def receive(self, _kind: type[LaunchedKernels], patience_s: float) -> LaunchedKernels:
        if patience_s <= 0:
            raise WorkerError("the process did not answer for 0 s and was killed")
        if not self.answers:
            raise WorkerError("the process was killed by SIGSEGV")
        return LaunchedKernels(kernels=tuple(RAW.get(name, name) for name in self.answers.pop(0)))


def chosen(made: Library, launches: Sequence[Sequence[str]], patience_s: float = 60.0) -> tuple[Reach, FakeWorker]:
    child = FakeWorker(launches)
    opened = cast(WorkerPool, SimpleNamespace(take=lambda *_: nullcontext(child)))
    return sanitize.choose(made, CARD, L4, patience_s, opened), child


def test_the_cards_own_cases_are_enough_and_what_no_case_launches_is_named() -> None:
    found, child = chosen(library(*KERNELS), [[KERNELS[0], "fill"], [KERNELS[1]]])
    assert [case.id for case in found.cases] == OWN
    assert (found.unreached, found.unknown, child.answers) == ((), None, [])
    found, _ = chosen(library(*KERNELS, "never"), [[KERNELS[0]], [KERNELS[1]], *[["fill"]] * 200])
    assert ([case.id for case in found.cases], found.unreached, found.unknown) == (OWN, ("never",), None)


def test_a_kernel_that_they_do_not_launch_is_looked_for_in_the_smallest_cases_first() -> None:
    found, child = chosen(library(*KERNELS, "tail"), [[KERNELS[0]], [KERNELS[1]], [], [KERNELS[0]], ["tail"]])
    assert len(found.cases) == 3
    assert found.cases[2].axes == child.asked[4], "what launches nothing new is left out"
    sizes = [case["S"] * case["B"] * case["H"] for case in child.asked[2:]]
    assert sizes == sorted(sizes)
    assert sizes[0] < 512 * 16 * 4, "fuzzed cases are smaller than timed ones"
    assert len(child.asked) == len(OWN) + len(fuzz_trials.trials(0, CARD, "cuda")) + len(
        {case.id for name in ("pr", "full", "ladder", "smoke") for case in CARD.suites[name]}
    )


def test_variants_of_a_packages_function_are_one_kernel() -> None:
    made = library("swiglu", "swiglu at m1_n1_fp16", "swiglu[BLOCK=64]", kind="package")
    found, _ = chosen(made, [["swiglu"], []])
    assert (found.unreached, found.unknown) == ((), None)


@pytest.mark.parametrize(
    ("launches", "missing", "why"),
    [
        ([], 2, "the process was killed by SIGSEGV"),
        ([[KERNELS[0]]], 1, "the process was killed by SIGSEGV"),
        ([[]] * 200, 2, "the profiler saw no launch of any"),
    ],
    ids=["at once", "at the second", "no profiler"],
)
def test_what_could_not_be_found_out_is_said_and_leaves_the_cards_own_cases(
    launches: list[list[str]], missing: int, why: str
) -> None:
    """No kernel is said to be launched by no case where not every case was tried."""
    found, _ = chosen(library(*KERNELS), launches)
    assert ([case.id for case in found.cases], found.unreached) == (OWN, ())
    assert found.unknown == f"no case was seen to launch {missing} of 2 kernels, and the search is not whole: {why}"


def test_past_its_time_the_search_ends_and_says_how_far_it_came() -> None:
    found, child = chosen(library(*KERNELS), [[KERNELS[0]]] * 9, patience_s=0.0)
    assert (found.unknown or "").endswith(f"only 0 of {len(child.asked)} cases were tried in 0 s")
    assert [case.id for case in found.cases] == OWN


def test_without_facts_of_this_gpu_it_is_said_why() -> None:
    unknown = "which kernels these cases launch is not known: "
    found, _ = chosen(library(facts_missing="cuobjdump is missing"), [])
    assert ([case.id for case in found.cases], found.unknown) == (OWN, f"{unknown}cuobjdump is missing")
    found, _ = chosen(library(*KERNELS, target="sm_90a"), [])
    assert found.unknown == f"{unknown}nothing is known of the library's kernels"


def test_without_own_cases_it_begins_with_the_smallest_that_is_timed_on_a_gpu() -> None:
    card = CARD.model_copy(update={"sanitize": ()})
    (smallest,) = sanitize.of_card(card)
    assert smallest.bytes == min(case.bytes or 0 for case in card.suites["pr"])
    assert sanitize.of_card(card.model_copy(update={"suites": {"pr": (), "cpu": card.suites["cpu"]}})) == ()


@pytest.mark.parametrize("kind", ["extension", "package"])
def test_a_large_timed_case_gives_way_to_a_fuzzed_one(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    large = tuple(case.model_copy(update={"bytes": 1e9}) for case in CARD.suites["pr"])
    card = CARD.model_copy(update={"sanitize": (), "suites": {**CARD.suites, "pr": large}})
    monkeypatch.setattr(f"{__name__}.CARD", card)
    found, _ = chosen(library("attention<0, false>", kind=kind), [["attention<0, false>"]])
    (watched,) = found.cases
    assert watched not in large
    assert 2**16 < (watched.bytes or 0.0) <= sanitize.MOST_BYTES, "the largest of those that are small: loops go round"
