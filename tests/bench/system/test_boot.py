from __future__ import annotations

from pathlib import Path

from kernelgate.bench.system import boot


def test_a_machine_is_the_same_until_it_starts_again(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_text("6f1c\n")
    second.write_text("a0b2\n")

    assert boot.identity(first) == boot.identity(first) != boot.identity(second)
    assert len(boot.identity(first) or "") == 12
    assert boot.identity(tmp_path / "none") is None
