"""What is kept of a soak is tried again, and a file that is none is left alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelgate.bench.kernel import fuzz_trials
from kernelgate.bench.kernel.fuzz_trials import KeptTrial
from tests import faulty

ID = "s37_b1_h1_d64_fp32_causal_scale1_distribution-normal_way-plain"


def test_what_the_card_no_longer_has_is_left_out(tmp_path: Path) -> None:
    for id_ in ("n37_fp32_distribution-normal_way-plain", ID.replace("plain", "stream")):
        fuzz_trials.keep(tmp_path, "attention", KeptTrial(id=id_, seed=5, why="error 1"))
    assert fuzz_trials.kept_failures(tmp_path, faulty.card(), "cpu") == ()


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"id": "a", "seed": -1, "why": ""}', b"\xff" * 30_000])
def test_a_broken_file_is_named_and_left_alone(
    tmp_path: Path, content: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    good = fuzz_trials.keep(tmp_path, "attention", KeptTrial(id=ID, seed=5, why="error 1"))
    broken = good.with_name("broken.json")
    broken.write_bytes(content)
    assert [one.id for one in fuzz_trials.kept_failures(tmp_path, faulty.card(), "cpu")] == [ID]
    assert f"{broken} is left out" in capsys.readouterr().err
    assert broken.read_bytes() == content
