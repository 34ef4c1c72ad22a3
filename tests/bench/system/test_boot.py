from __future__ import annotations

from pathlib import Path

from kernelgate.bench.system import lock


def test_a_machine_is_the_same_until_it_starts_again(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_text("6f1c\n")
    second.write_text("a0b2\n")

    assert lock.boot_identity(first) == lock.boot_identity(first) != lock.boot_identity(second)
    assert len(lock.boot_identity(first) or "") == 12
    assert lock.boot_identity(tmp_path / "none") is None
