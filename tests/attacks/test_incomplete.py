"""Records that say less than was planned, or something else: nothing passes for them, and no failure is taken back."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.attacks.honest import PLAN, ROUNDS, TWO, Change, PullRequestRuns, changed, judged, measured, only, timings

REGRESSED, IMPROVED, UNCHANGED = (f"performance: {word}" for word in ("regressed", "improved", "unchanged"))
WITHOUT_WORK = PLAN.model_copy(update={"cases": tuple(one.model_copy(update={"work": None}) for one in PLAN.cases)})


def honest(change: float = 0.0) -> bytes:
    return changed(measured(change))


def each(places: Callable[[dict[str, Any]], list[dict[str, Any]]], **facts: Any) -> Change:
    """Each of these parts of a record with these facts."""
    return lambda content: [part.update(facts) for part in places(content)]


run = partial(each, lambda content: [content["run"]])
cases = partial(each, lambda content: content["cases"])
every = partial(each, timings)
fuzz = partial(each, lambda content: content["checks"][:1])
sanitizer = partial(each, lambda content: content["checks"][1:])


@pytest.mark.parametrize(
    ("change", "conclusion", "label"),
    [(0.0, "success", UNCHANGED), (-0.3, "success", IMPROVED), (0.1, "failure", REGRESSED)],
)
@pytest.mark.parametrize("command", [False, True])
def test_an_honest_measurement_is_judged(
    pull: PullRequestRuns, change: float, conclusion: str, label: str, command: bool
) -> None:
    found = pull.run([("l4", honest(change))], command=command)
    assert (found.conclusion, found.labels) == (conclusion, (label,))


@pytest.mark.parametrize("command", [True, False], ids=["by a command", "by a push"])
def test_a_harmless_case_takes_no_failure_back(pull: PullRequestRuns, command: bool) -> None:
    worse = measured(0.0, worse=0.1)
    assert pull.run([("l4", changed(worse))]).conclusion == "failure"
    found = pull.run([("l4", changed(worse, only("m512")))], command=command)
    assert (found.conclusion, found.labels) == ("failure", (REGRESSED,))
    assert "incomplete, since `m1024` was not timed" in found.comment


def test_a_harmless_case_alone_is_no_verdict(pull: PullRequestRuns) -> None:
    found = pull.run([("l4", changed(measured(-0.3), only("m512")))], command=True)
    assert (found.conclusion, found.labels) == ("action_required", ())
    assert found.comment.startswith(
        "### ❔ Held: incomplete, since `m1024` was not timed; so far 29.96% faster on the L4\n"
    )


def test_a_gpu_that_a_command_left_out_keeps_the_verdict_open(pull: PullRequestRuns) -> None:
    pull.plan = TWO
    found = pull.run([("l4", honest(-0.3))], command=True)
    assert (found.conclusion, found.labels) == ("action_required", ())
    assert "The GPU h100 was to be measured, and left no record that can be used" in found.comment


def test_a_check_that_waits_for_somebody_takes_no_failure_back(pull: PullRequestRuns) -> None:
    """Retargeted to a base from which the change touches workflows, and back, with the measurement cancelled."""
    assert pull.run([("l4", honest(0.1))]).conclusion == "failure"
    shown = pull.desk.github.pulls[1]
    files, shown.files = shown.files, [*shown.files, {"filename": ".github/workflows/performance.yml"}]
    assert pull.run([("l4", honest(-0.3))]).conclusion == "action_required"
    shown.files = files
    found = pull.run([], {"measure (l4) / measure": ("cancelled", ())}, conclusion="cancelled")
    assert found.conclusion != "neutral"


@pytest.mark.parametrize(
    ("change", "conclusion", "labels"),
    [(-0.3, "action_required", ()), (0.1, "failure", (REGRESSED,))],
    ids=["faster", "slower"],
)
def test_of_two_gpus_one_left_no_record(
    pull: PullRequestRuns, change: float, conclusion: str, labels: tuple[str, ...]
) -> None:
    pull.plan = TWO
    found = pull.run([("l4", honest(change))])
    assert (found.conclusion, found.labels) == (conclusion, labels)


@pytest.mark.parametrize("beside", [0.0, 0.1, None], ids=["beside no change", "beside a regression", "alone"])
def test_an_invented_label_proves_nothing(pull: PullRequestRuns, beside: float | None) -> None:
    records = [("moon", honest(-0.3)), *([("l4", honest(beside))] if beside is not None else [])]
    found = pull.run(records)
    assert IMPROVED not in found.labels
    assert found.conclusion == ("failure" if beside else "action_required")
    assert "ot your fault on `moon`: kernelgate itself failed" in found.comment
    assert "The policy has no GPU with the label moon" in found.comment


def device(**facts: str) -> Change:
    return lambda content: content.update(environments=[{"id": "0", "device": facts}])


@pytest.mark.parametrize(
    ("device", "named"),
    [
        (device(name="NVIDIA H200", compute_capability="9.0"), "it was measured on compute capability `9.0`"),
        (device(name="AMD EPYC"), "it is not known on which compute capability it was measured"),
        (device(name="NVIDIA L4"), "it is not known on which compute capability it was measured"),
        (lambda content: content.pop("environments"), "it is not known on which compute capability"),
        (lambda content: [one.update(environment="9") for one in content["processes"]], "it is not known on which"),
    ],
    ids=["an H200", "a CPU", "no capability", "no environment", "processes of an environment that is not there"],
)
def test_a_record_of_another_device_passes_for_no_gpu(pull: PullRequestRuns, device: Change, named: str) -> None:
    found = pull.run([("l4", changed(measured(-0.3), device))])
    assert (found.conclusion, found.labels) == ("action_required", ())
    assert named.replace("`", "") in found.comment.replace("`", "")


def test_a_regression_on_a_device_that_is_not_told_blocks(pull: PullRequestRuns) -> None:
    assert pull.run([("l4", changed(measured(0.1), device(name="NVIDIA L4")))]).conclusion == "failure"


@pytest.mark.parametrize(
    ("first", "second", "conclusion"),
    [(0.1, -0.3, "failure"), (-0.3, 0.1, "action_required"), (0.0, -0.3, "action_required")],
)
def test_a_later_artifact_of_the_same_attempt_replaces_nothing(
    pull: PullRequestRuns, first: float, second: float, conclusion: str
) -> None:
    found = pull.run([("l4", honest(first)), ("l4", honest(second))])
    assert found.conclusion == conclusion
    assert IMPROVED not in found.labels
    assert "2 artifacts kernelgate-record-l4 are of one attempt" in found.comment.replace("`", "")


def test_the_artifact_of_a_later_attempt_counts(pull: PullRequestRuns) -> None:
    again = changed(measured(-0.3), run(run_attempt=2))
    found = pull.run([("l4", honest(0.1)), ("l4", again)], run_attempt=2)
    assert (found.conclusion, found.labels) == ("success", (IMPROVED,))


NOTE = {"schema": "kernelgate.failure/1", "fault": "runner", "message": "the GPU is gone"}


def note(**facts: Any) -> dict[str, bytes]:
    return {"failure.json": json.dumps(NOTE | facts).encode()}


BESIDE: dict[str, list[tuple[str, Any]]] = {
    "of an attempt that is not there yet": [("l4", changed(measured(-0.3), run(run_attempt=2)))],
    "a note of the same attempt": [("l4", note(run_attempt=1))],
    "17 of invented labels": [(f"x{number}", b"no zip") for number in range(17)],
    "505 of invented labels": [(f"x{number}", b"no zip") for number in range(505)],
    "40 of the same label": [("l4", b"no zip")] * 40,
}


@pytest.mark.parametrize("beside", BESIDE)
def test_no_artifact_beside_it_hides_a_regression(pull: PullRequestRuns, beside: str) -> None:
    found = pull.run([("l4", honest(0.1)), *BESIDE[beside]])
    assert (found.conclusion, found.labels) == ("failure", (REGRESSED,))
    if "invented" in beside:
        assert len([one for one in pull.desk.github.requests if one.path.startswith("/blob/")]) == 16


@pytest.mark.parametrize("fault", ["runner", "ours"])
@pytest.mark.parametrize("job", ["measure (l4) / measure", "build / build"])
def test_a_note_does_not_outweigh_what_github_says(pull: PullRequestRuns, fault: str, job: str) -> None:
    label, step = ("l4", "fuzz") if job.startswith("measure") else ("build", "build head")
    jobs = {job: ("failure", [(step, "failure")])}
    found = pull.run([(label, note(fault=fault))], jobs, conclusion="failure", run_attempt=3)
    assert (found.conclusion, found.labels) == ("action_required", ())
    why = f"the job {job} stopped at {step}, and only a file that it left says that"
    assert found.comment.replace("`", "").startswith(f"### ❔ Held: not verified: {why}")
    assert "**Now:** somebody with write access has it measured again: `/kernelgate bench`" in found.comment


def test_a_record_that_says_nothing_of_a_failed_fuzz_step_does_not_pass(pull: PullRequestRuns) -> None:
    jobs = {"measure (l4) / measure": ("failure", [("fuzz", "failure")])}
    assert pull.run([("l4", honest(0.0))], jobs, conclusion="failure").conclusion == "action_required"
    assert pull.run([("l4", honest(0.1))], jobs, conclusion="failure").conclusion == "failure"


def test_a_note_on_a_step_that_only_the_runner_can_fail_is_believed(pull: PullRequestRuns) -> None:
    jobs = {"measure (l4) / measure": ("failure", [("doctor", "failure")])}
    found = pull.run([("l4", note())], jobs, conclusion="failure")
    assert found.comment.startswith("### 🛠️ Held: not judged, not your fault: the GPU is gone")
    assert found.conclusion == "action_required"


def head(factor: float) -> Change:
    """Every time of the head, in the witness as well."""

    def change(content: dict[str, Any]) -> None:
        for one in content["processes"]:
            for timing in one["timings"]:
                timing["samples_us"]["head"] = [factor * time for time in timing["samples_us"]["head"]]

    return change


def pasted(content: dict[str, Any]) -> None:
    first = content["processes"][0]["timings"]
    for one in content["processes"][:4]:
        one["timings"] = first


def constant(content: dict[str, Any]) -> None:
    for timing in timings(content):
        timing["samples_us"] |= {"base": [100.0] * ROUNDS, "head": [70.0] * ROUNDS}


def scaled(content: dict[str, Any]) -> None:
    for timing in timings(content):
        timing["samples_us"]["head"] = [0.85 * time for time in timing["samples_us"]["base"]]


def without(key: str) -> Change:
    return lambda content: content.pop(key)


def calls(made: int, compared: int | None, **more: int) -> dict[str, Any]:
    return {side: {"made": made, "compared": compared, **more} for side in ("base", "head")}


one_library = each(lambda content: content["builds"], library_sha256="e" * 64, call_hash="f" * 64)


def two_batches(content: dict[str, Any]) -> None:
    for timing in content["processes"][-1]["timings"]:
        timing["samples_us"] = {side: times[:2] for side, times in timing["samples_us"].items()}


def as_bytes(content: dict[str, Any]) -> None:
    """Arithmetic of 8-bit numbers is twice as fast."""
    for case in content["cases"]:
        case["axes"]["dtype"] = "fp8"


def without_side(side: str) -> Change:
    return lambda content: [timing["samples_us"].pop(side) for timing in timings(content)]


UNKNOWN_GPU = device(name="NVIDIA L5", compute_capability="8.9")


def processes(chosen: Callable[[list[Any]], list[Any]]) -> Change:
    return lambda content: content.update(processes=chosen(content["processes"]))


def told(starts: Callable[[int, float], float], **facts: Any) -> Change:
    """What processes tell of themselves. `starts`: when a sample began, by its number and its time."""

    def change(content: dict[str, Any]) -> None:
        for one in content["processes"]:
            one.update({"exit": 0, "loaded": ["head", "base"], "wall_seconds": 1.0, **facts})
            for timing in one["timings"]:
                timing["inner_repeats"] = 3
                timing["started_us"] = {
                    side: [starts(number, time) for number, time in enumerate(times)]
                    for side, times in timing["samples_us"].items()
                }

    return change


def one_after_the_other(number: int, _: float) -> float:
    return 900.0 * number


witness = each(lambda content: content["processes"][-1]["timings"], calls={})


def witness_by(made: Callable[[list[float], list[float]], dict[str, list[float]]]) -> Change:
    """The witness's times from those of the comparison and its own."""

    def change(content: dict[str, Any]) -> None:
        for first, last in zip(content["processes"][0]["timings"], content["processes"][-1]["timings"], strict=True):
            last["samples_us"] = made(first["samples_us"], last["samples_us"])

    return change


NOT_PASSED: dict[str, tuple[str, tuple[Change, ...]]] = {
    "times of a process that crashed": (
        "a process ended with 139, and has times",
        (told(one_after_the_other, exit=139),),
    ),
    "times longer than their process": (
        "took longer than their process ran",
        (told(one_after_the_other, wall_seconds=0.001),),
    ),
    "samples closer than they take": ("began before the ones before them", (told(lambda number, time: number * time),)),
    "outputs of the witness omitted": ("the outputs of m512, m1024 were not compared in every", (witness,)),
    "the witness's base scaled": (
        "are 0.7 times the base's: not measured",
        (witness_by(lambda _, own: {"base": own["base"], "head": [0.7 * time for time in own["base"]]}),),
    ),
    "the comparison's times as the witness's": (
        "copied, not measured",
        (witness_by(lambda paired, own: {side: paired[side][: len(own[side])] for side in ("base", "head")}),),
    ),
    "fuzz omitted": ("the fuzz check did not run", (without("checks"),)),
    "fuzz skipped": ("the fuzz check did not run", (fuzz(status="skipped", results=[], run=None, failed=None),)),
    "fuzz empty": ("the fuzz check did not run", (fuzz(results=[], run=0),)),
    "fuzz passed with a failed result": (
        "it says passed, and 1 of its results failed",
        (fuzz(results=[{"id": "f", "seed": 1, "passed": False}], run=1),),
    ),
    "fuzz passed at 99 times the limit": (
        "it says passed, with an error 99 times its limit",
        (fuzz(results=[{"id": "f", "seed": 1, "passed": True, "error_ratio": 99.0}], run=1),),
    ),
    "fuzz of fewer results than ran": ("it says that 38 ran, and has 4 results", (fuzz(run=38),)),
    "outputs omitted": ("were not compared in every process", (every(calls={}),)),
    "one output of 400": ("of the calls of m512, m1024 less than 1% were compared", (every(calls=calls(400, 1)),)),
    "one call for all samples": (
        f"{ROUNDS} calls of the base were timed, and 1 were made",
        (every(calls=calls(1, 1)),),
    ),
    "more compared than made": (
        "500 calls of the base were compared, and 400 were made",
        (every(calls=calls(400, 500)),),
    ),
    "no input that was not read before": (
        "every call read inputs that an earlier one had read",
        (every(calls=calls(400, 100, repeated=400)),),
    ),
    "one library on both sides": ("base and head are one library, which is not", (one_library,)),
    "a witness of two batches": ("were not timed by the witness", (two_batches,)),
    "no base sha": ("the record does not say which commit its base is", (run(base_sha=None),)),
    "no base": ("the head was measured alone", (without_side("base"),)),
    "1000 times as fast": ("the arithmetic of the L4 allows no less than 49.59 µs", (head(1e-3),)),
    "1000 times as fast without work": ("the arithmetic of the L4 allows", (head(1e-3), cases(work=None))),
    "1000 times as fast with tiny work": (
        "the arithmetic of the L4 allows",
        (head(1e-3), cases(work={"flops": 1.0, "bytes": 1.0})),
    ),
    "1000 times as fast on an unknown GPU": ("allows no less than 8.287 µs", (head(1e-3), UNKNOWN_GPU)),
    "1000 times as fast as bytes": ("the arithmetic of the L4 allows no less than 49.59 µs", (head(0.6), as_bytes)),
    "one process five times": ("copied, not measured", (pasted,)),
    "one value again and again": ("the clock is too coarse", (constant,)),
    "the base's times scaled": ("are 0.85 times the base's: not measured", (scaled,)),
    "no reference": ("the reference of m512, m1024 was not timed", (without_side("reference"),)),
    "one process": ("were timed in 1 of 2 processes", (processes(lambda each: each[:1]),)),
    "sanitizer skipped": (
        "the sanitizer check did not run: no GPU",
        (sanitizer(status="skipped", run=None, reason="No GPU."),),
    ),
    "sanitizer passed with a finding": (
        "it says passed, and 1 of its results failed",
        (sanitizer(findings=[{"text": "a race"}]),),
    ),
    "no witness": ("were not timed by the witness", (processes(lambda each: each[:4]),)),
    "a case too many": (
        "it holds more, which the plan did not ask for",
        (lambda content: content["cases"].append({"card": "norm", "id": "more"}),),
    ),
    "of another schema": ("refused", (lambda content: content.update(schema="kernelgate.run/1"),)),
}


def test_what_processes_tell_of_themselves_passes_where_it_can_be(folder: Path) -> None:
    found = judged(folder, changed(measured(-0.3), told(one_after_the_other)))
    assert (found.conclusion, found.labels) == ("success", (IMPROVED,))


@pytest.mark.parametrize("attack", NOT_PASSED)
def test_what_is_not_shown_does_not_pass(folder: Path, attack: str) -> None:
    said, changes = NOT_PASSED[attack]
    found = judged(folder, changed(measured(-0.3), *changes))
    passes = attack in ("one value again and again", "sanitizer skipped")
    assert (found.conclusion, found.labels) == ("neutral" if passes else "action_required", ())
    assert said in found.comment.replace("`", "")


def test_what_no_roof_shows_the_reference_does(folder: Path) -> None:
    """Of a case whose work the card does not say, on a GPU that nobody knows."""
    found = judged(folder, changed(measured(-0.3), head(1e-3), UNKNOWN_GPU), WITHOUT_WORK)
    assert found.conclusion == "action_required"
    assert (
        "the head takes 0.07 µs, base and reference at least 99.96 µs: more than 100 times as fast is not plausible"
        in found.comment
    )


def test_a_reference_that_fails_without_base_and_head_is_none_to_wait_for(pull: PullRequestRuns) -> None:
    """Of each case of the plan: another one's was not timed, and nobody knows why."""
    pull.plan = {"l4": WITHOUT_WORK}
    made = measured(-0.3)
    ids = [case.id for case in made.cases]
    for known, conclusion in ((ids, "success"), (ids[1:], "action_required")):
        notes = [{"code": "reference_fails", "text": f"{one}: the reference is not timed: no type"} for one in known]
        record = changed(made, without_side("reference"), lambda content, notes=notes: content.update(notes=notes))
        assert pull.run([("l4", record)]).conclusion == conclusion


@pytest.mark.parametrize("noted", ["no_reference", "note"])
@pytest.mark.parametrize("roof", [True, False])
def test_a_reference_that_could_not_be_timed_is_excused_where_the_roof_is_known(
    pull: PullRequestRuns, noted: str, roof: bool
) -> None:
    if not roof:
        pull.plan = {"l4": WITHOUT_WORK}
    notes = [{"code": noted, "text": "the reference is not timed: out of memory"}]
    record = changed(measured(-0.3), without_side("reference"), lambda content: content.update(notes=notes))
    conclusion = "action_required" if noted != "no_reference" else "success" if roof else "neutral"
    assert pull.run([("l4", record)]).conclusion == conclusion


def test_a_record_without_a_base_survives_no_retarget(pull: PullRequestRuns) -> None:
    unnamed = changed(measured(-0.3), lambda content: content["run"].pop("base_sha"), without("builds"))
    pull.desk.github.pulls[1].base_sha = "d" * 40
    found = pull.run([("l4", unnamed)])
    assert found.conclusion == "action_required"
    assert "does not say which commit its base is" in found.comment
