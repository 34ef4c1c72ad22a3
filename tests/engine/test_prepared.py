"""What is changed of a workflow before act takes it: no more than is listed, and nothing that hides a fault."""

from __future__ import annotations

import copy
import re

import pytest

from tests.engine.prepared import SUBSTITUTIONS, Substitution, UnknownInputError, prepare
from tests.workflows.documents import actions, steps, workflows

DOCUMENTS = [*workflows().values(), *actions().values()]


@pytest.mark.parametrize("substitution", SUBSTITUTIONS, ids=lambda each: each.name)
def test_each_substitution_is_needed(substitution: Substitution) -> None:
    changed = [each.path for each in DOCUMENTS if substitution.change(copy.deepcopy(each.content))]
    assert changed, f"no workflow has {substitution.name} any more"
    assert len(substitution.reason) > 20


def test_what_is_left_is_what_the_files_say() -> None:
    """A step's command, condition and inputs are never changed, but for the names in the list."""
    for document in DOCUMENTS:
        prepared = prepare(document.content, "kernelgate/kernelgate", "f" * 40)
        asked = [step for _, step in steps(document.content)]
        ours = [step for _, step in steps(prepared) if not step.get("uses", "").startswith("kernelgate-engine/")]
        assert [step.get("run") for step in ours] == [step.get("run") for step in asked]
        assert [set(step.get("with", {})) for step in ours] == [set(step.get("with", {})) for step in asked]


def test_no_property_that_act_lacks_is_left() -> None:
    for document in DOCUMENTS:
        left = str(prepare(document.content, "kernelgate/kernelgate", "f" * 40))
        assert re.findall(r"runner\.environment|job\.workflow_\w+|\$/\.github|'queue'|'deployment'", left) == []


@pytest.mark.parametrize("action", ["checkout", "upload-artifact", "download-artifact"])
def test_an_input_that_a_stand_in_does_not_know_is_refused(action: str) -> None:
    planted, step = next(
        (content, step)
        for content in (copy.deepcopy(each.content) for each in DOCUMENTS)
        for _, step in steps(content)
        if f"actions/{action}@" in step.get("uses", "")
    )
    step["with"]["overwite"] = True
    with pytest.raises(UnknownInputError, match="overwite"):
        prepare(planted, "kernelgate/kernelgate", "f" * 40)
