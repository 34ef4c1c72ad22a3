"""What is changed of a workflow before act takes it: no more than is listed, and nothing that hides a fault."""

from __future__ import annotations

import pytest

from tests.engine.prepared import UnknownInputError, prepare, refuse_unknown_inputs
from tests.workflows.documents import actions, steps, workflows

DOCUMENTS = [*workflows().values(), *actions().values()]


def test_what_is_left_is_what_the_files_say() -> None:
    """A step's command, condition and inputs are never changed, but for the names in the list."""
    for document in DOCUMENTS:
        prepared = prepare(document.content, "kernelgate/kernelgate", "f" * 40)
        asked = [step for _, step in steps(document.content)]
        ours = [step for _, step in steps(prepared) if not step.get("uses", "").startswith("kernelgate-engine/")]
        assert [step.get("run") for step in ours] == [step.get("run") for step in asked]
        assert [set(step.get("with", {})) for step in ours] == [set(step.get("with", {})) for step in asked]


def test_an_input_that_a_stand_in_does_not_know_is_refused() -> None:
    step = {"uses": "actions/checkout@v6", "with": {"persist-credential": False}}
    with pytest.raises(UnknownInputError, match="persist-credential"):
        refuse_unknown_inputs(step)
