"""Records that are made to stop the report, or to keep it busy: each is judged or refused, and a check is posted."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kernelgate.bench import record
from kernelgate.bench.record import Profile
from kernelgate.ci.document import render
from kernelgate.ci.github import assemble
from kernelgate.ci.policy.policy import Policy
from tests.attacks.honest import PLAN, Change, PullRequestRuns, changed, judged, judged_once, measured
from tests.ci.report_examples import EXAMPLES


def metric(value: float) -> Change:
    return lambda content: content.update(
        profile=[{"card": "norm", "case": "m512", "side": "head", "metrics": {"x": value}}]
    )


def capability(text: str) -> Change:
    return lambda content: content["environments"][0]["device"].update(compute_capability=text)


def sample(value: float) -> Change:
    def change(content: dict[str, Any]) -> None:
        content["processes"][0]["timings"][0]["samples_us"]["head"][0] = value

    return change


CRAFTED: dict[str, Change] = {
    "capability in superscripts": capability("²³.9"),
    "capability of a line": capability("8.9\n"),
    "a metric of -1e300": metric(-1e300),
    "a sample of 1e300": sample(1e300),
    "a denormal sample": sample(5e-324),
    "a count of 2 to the 64": lambda content: content["checks"][0].update(run=2**64),
    "work of 1e300": lambda content: content["cases"][0]["work"].update(flops=1e300),
    "a timed error of 1e30": lambda content: content["processes"][0]["timings"][0].update(
        errors={"head": {"maximum": 1e30}}
    ),
    "a fuzz error of 1e30": lambda content: content["checks"][0]["results"][0].update(max_abs_error=1e30),
    "a share of 2": lambda content: content["processes"][0]["timings"][0].update(
        telemetry={"throttle_shares": {"sw_power_cap": 2}}
    ),
}


@pytest.mark.parametrize("crafted", CRAFTED)
def test_numbers_that_no_measurement_gives_are_refused(tmp_path: Path, crafted: str) -> None:
    found = judged(tmp_path, changed(measured(-0.3), CRAFTED[crafted]))
    assert (found.conclusion, found.labels) == ("action_required", ())
    assert "is refused" in found.comment
    assert "not your fault" not in found.comment, "the head may have caused it"


def test_a_crafted_record_leaves_no_old_success(pull: PullRequestRuns) -> None:
    assert pull.run([("l4", changed(measured(-0.3)))]).conclusion == "success"
    assert pull.run([("l4", changed(measured(0.1), metric(-1e300)))]).conclusion == "action_required"


def stumbles(*_: object, **__: object) -> Any:
    raise ZeroDivisionError("of\nours")


@pytest.mark.parametrize("where", ["judge", "claims.assess", "render.comment", "render.comment of all"])
def test_a_record_that_makes_us_stumble_is_refused_and_a_check_is_posted(
    pull: PullRequestRuns, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """In whatever part of ours: the traceback is in a file, and one sentence says so."""
    comment, calls = render.comment, iter(range(100))

    def stumbles_at(number: int) -> Callable[..., str]:
        return lambda *rest: stumbles() if next(calls) == number else comment(*rest)

    if where.startswith("render"):
        monkeypatch.setattr(render, "comment", stumbles_at(1 if where.endswith("all") else 0))
    else:
        monkeypatch.setattr(assemble.claims if where == "claims.assess" else assemble, where.split(".")[-1], stumbles)
    found = pull.run([("l4", changed(measured(-0.3)))])
    assert (found.conclusion, found.labels) == ("action_required", ())
    assert "what the run left cannot be judged: unexpected ZeroDivisionError (of)" in found.comment.replace("`", "")


def test_a_regression_blocks_beside_a_record_that_makes_us_stumble(
    pull: PullRequestRuns, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = PLAN.model_copy(update={"label": "h100"})
    pull.plan = {"l4": PLAN, "h100": other}
    honest = judged_once

    def of_one(made: record.RunRecord, policy: Policy, *rest: Any, **options: Any) -> Any:
        if options.get("name") == "h100":
            stumbles()
        return honest(made, policy, *rest, **options)

    monkeypatch.setattr(assemble, "judge", of_one)
    found = pull.run([("l4", changed(measured(0.1))), ("h100", changed(measured(-0.3)))])
    assert found.conclusion == "failure"


def crowd(content: dict[str, Any]) -> None:
    """Of 250 cases × 32 processes × 60 rounds, the judge would have for two minutes."""
    samples = {"base": [100.0], "head": [100.0]}
    content["cases"] = [{"card": "norm", "id": f"c{number}"} for number in range(250)]
    timings = [{"card": "norm", "case": case["id"], "samples_us": samples} for case in content["cases"]]
    content["processes"] = [{"id": str(number), "timings": timings} for number in range(2)]


def many_processes(content: dict[str, Any]) -> None:
    first = content["processes"][0]
    content["processes"] = [first | {"id": str(number)} for number in range(8)]


@pytest.mark.parametrize(
    ("busy", "said"),
    [
        (crowd, "it has 250 cases; the plan has 2 cases, and at most 32 may be added"),
        (many_processes, "it has m512 in 8 processes; the policy has no more than 7"),
    ],
    ids=["250 cases", "8 processes"],
)
@pytest.mark.parametrize("task", ["bench", "profile"])
def test_more_than_the_plan_warrants_is_not_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, busy: Change, said: str, task: Any
) -> None:
    monkeypatch.setattr(assemble, "judge", lambda *_, **__: pytest.fail("it was judged"))
    found = judged(tmp_path, changed(measured(), busy), task=task)
    assert found.conclusion == "action_required"
    assert said in found.comment.replace("`", "")


NUMBERS = st.sampled_from([0, -1, 1, 3, 1e-9, 1e15, 1e21, -1e21, 2**63, 2**64 - 1, 0.5, 99.0, 1e-300, -1e300])
TEXTS = st.sampled_from(
    ["", "²³.9", "\x00", "x" * 3000, "∞", "|", "\n", "9.9", "head", "reference", "skipped", "witness"]
)
HONEST = [
    json.loads(record.to_json(made))
    for made in (
        measured(0.1),
        measured(-0.3).model_copy(
            update={"profile": (Profile(card="norm", case="m512", side="head", metrics={"a": 1.0}),)}
        ),
        EXAMPLES["profile_and_resources"]().record,
        EXAMPLES["wrong_result"]().record,
    )
]


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where something stands; of a long list in the first places only."""
    items = value.items() if isinstance(value, dict) else enumerate(value[:3]) if isinstance(value, list) else ()
    for key, inner in items:
        yield (*path, key)
        yield from places(inner, (*path, key))


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """An honest record with one to three parts deleted, doubled, or replaced by other numbers and words."""
    content = copy.deepcopy(draw(st.sampled_from(HONEST)))
    for _ in range(draw(st.integers(1, 3))):
        *path, last = draw(st.sampled_from(list(places(content))))
        holder = content
        for key in path:
            holder = holder[key]
        how = draw(st.sampled_from(["delete", "double", "number", "text", "same number", "null"]))
        if how == "delete":
            del holder[last]
        elif how == "double" and isinstance(holder, list):
            holder.append(copy.deepcopy(holder[last]))
        elif how == "same number" and isinstance(holder[last], list):
            holder[last] = [draw(NUMBERS)] * len(holder[last])
        else:
            holder[last] = draw({"text": TEXTS, "null": st.none()}.get(how, NUMBERS))
    return json.dumps(content).encode()


@pytest.mark.nightly
@given(data=mutated())
@settings(max_examples=600, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_no_record_makes_us_stumble(tmp_path: Path, data: bytes) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(assemble, "_broken", lambda error, _: pytest.fail(f"it stumbles: {error!r}"))
        judged(tmp_path, data)
