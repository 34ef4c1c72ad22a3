"""The list of actions: names are kept for ever, and each bottleneck has two that are tried first."""

from __future__ import annotations

import re

import pytest

from kernelgate.ci.explain.diagnosis import Bottleneck
from kernelgate.ci.explain.recommend import ACTIONS, CATALOGUE, against


def test_names_are_stable_words_and_stand_once() -> None:
    assert len(CATALOGUE) == len(ACTIONS)
    assert all(re.fullmatch(r"[a-z]+(-[a-z]+)*", name) for name in CATALOGUE)


@pytest.mark.parametrize("bottleneck", Bottleneck)
def test_each_bottleneck_has_two_actions(bottleneck: Bottleneck) -> None:
    assert len(against(bottleneck)) >= 2
    assert all(bottleneck in action.against for action in against(bottleneck))
