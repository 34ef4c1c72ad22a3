"""What native code of a kernel finds where it runs, and what it can put in the place of something else."""

from __future__ import annotations

import re

import pytest

from tests.workflows.documents import workflows

WORKFLOWS = workflows()
DIGESTS = {
    "base-digest": "${{ needs.build.outputs.base-digest }}",
    "head-digest": "${{ needs.build.outputs.head-digest }}",
}
LIBRARY = re.compile(r"kernelgate-library-(base|head)")


def test_no_step_measures_a_library_that_is_not_the_one_that_was_built() -> None:
    """Whoever replaces the artifact, or the folder while another library is fuzzed."""
    job = WORKFLOWS["measure"].jobs["measure"]
    assert job["env"]["BASE"] == "out/libraries/kernelgate-library-base@sha256:${{ inputs.base-digest }}"
    assert job["env"]["HEAD"] == "out/libraries/kernelgate-library-head@sha256:${{ inputs.head-digest }}"
    for step in job["steps"]:
        words = [step.get("run", ""), *map(str, step.get("env", {}).values())]
        for text in words:
            assert all(text[found.end() :].startswith("@sha256:") for found in LIBRARY.finditer(text)), step["name"]
            assert len(re.findall(r"--(?:base-|head-|)library", text)) == len(re.findall(r'"\$(?:BASE|HEAD)"', text))


@pytest.mark.parametrize("name", ["answer-command", "measure-pull-request", "profile", "refresh-baseline"])
def test_the_digests_come_from_the_job_that_built(name: str) -> None:
    given = WORKFLOWS[name].jobs["measure"]["with"]
    sides = ["head-digest"] if name == "refresh-baseline" else list(DIGESTS)
    assert {side: given.get(side) for side in sides} == {side: DIGESTS[side] for side in sides}


def test_the_bases_digest_is_known_before_the_head_is_built() -> None:
    """Building the head runs its code; an output of a step that is over can no longer be changed."""
    job = WORKFLOWS["build"].jobs["build"]
    assert job["outputs"] == {side: f"${{{{ steps.{side[:4]}.outputs.digest }}}}" for side in DIGESTS}
    steps = {step["id"]: at for at, step in enumerate(job["steps"]) if "id" in step}
    assert steps["base"] < steps["head"]
