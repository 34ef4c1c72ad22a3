"""Each reader with its corpus, and with inputs that hypothesis makes of it. `make fuzz` goes on from there."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fuzzing import readers
from tests.fuzzing.mutation import mutated

pytestmark = pytest.mark.usefixtures("reports_at_once")
IN_THIS_PROCESS = sorted(set(readers.READERS) - {"profile"})
"""A made-up profile may end the process that reads it (tests/ci/explain/test_analyze.py)."""


CORPUS = {name: sorted((readers.CORPUS / name).iterdir()) for name in readers.READERS}


@pytest.mark.parametrize("name", IN_THIS_PROCESS)
def test_what_once_was_found_is_read_or_refused_in_a_sentence(name: str) -> None:
    for path in CORPUS[name]:
        readers.check(name, path.read_bytes())


@pytest.mark.parametrize("name", IN_THIS_PROCESS)
def test_an_honest_input_is_read(name: str) -> None:
    """A reader that refuses everything would pass the tests beside this one."""
    honest = [path for path in CORPUS[name] if path.name.startswith("honest_")]
    assert honest
    for path in honest:
        readers.READERS[name](path.read_bytes())


@pytest.mark.parametrize("name", IN_THIS_PROCESS)
@settings(max_examples=40)
@given(st.data())
def test_what_is_made_of_it_is_read_or_refused_in_a_sentence(name: str, data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(CORPUS[name]))
    seed = data.draw(st.integers(0, 1 << 32))
    readers.check(name, mutated(path.read_bytes(), random.Random(seed)))
