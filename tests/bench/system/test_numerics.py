"""What torch computes float32 with, whatever a card or a kernel's package says of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

from kernelgate.bench.kernel import loading
from kernelgate.bench.system import environment
from kernelgate.bench.timing import worker
from tests.miniature import SCALE_CARD


def in_the_old_way() -> None:
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.backends.cudnn.allow_tf32 = True


def in_the_new_way() -> None:
    torch.backends.cuda.matmul.fp32_precision = "tf32"
    torch.backends.cudnn.conv.fp32_precision = "tf32"


def at_once() -> None:
    torch.set_float32_matmul_precision("medium")


def without_repeating_bits() -> None:
    torch.set_deterministic_debug_mode("default")


WAYS = (in_the_old_way, in_the_new_way, at_once, without_repeating_bits)


@pytest.fixture(autouse=True)
def as_it_was() -> Iterator[None]:
    yield
    environment.pin_numerics()


@pytest.mark.parametrize("otherwise", WAYS)
def test_pinned_from_whatever_was_set(otherwise: Callable[[], None]) -> None:
    environment.pin_numerics()
    assert environment.changed_numerics() is None
    otherwise()
    words = environment.changed_numerics()
    assert words is not None
    assert "tf32" in words or "bf16" in words or "not deterministic" in words
    environment.pin_numerics()
    assert environment.changed_numerics() is None
    assert torch.get_float32_matmul_precision() == "highest"  # torch refuses to say it of a mixture of both ways
    assert not torch.backends.cuda.matmul.allow_tf32
    assert not torch.backends.cudnn.allow_tf32


def test_a_card_that_sets_torch_otherwise_is_run_as_all_are(tmp_path: Path) -> None:
    line = "import torch\ntorch.backends.cuda.matmul.allow_tf32 = True\n"
    (tmp_path / "scale.py").write_text(line + SCALE_CARD, encoding="utf-8")
    loading.load(tmp_path / "scale.py")
    assert environment.changed_numerics() is None


def test_a_reference_is_not_timed_where_a_kernels_package_changes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker.memory, "arguments", lambda *_: {})
    in_the_old_way()
    why = worker.without_reference(None, None)  # type: ignore[arg-type]
    assert why is not None
    assert why.startswith("the code of base or head sets torch to other numerics than references are timed with: ")
    assert "products in tf32, convolutions in tf32" in why


def test_the_environment_says_what_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NVIDIA_TF32_OVERRIDE", "0")
    monkeypatch.delenv("CUBLAS_WORKSPACE_CONFIG", raising=False)
    told = environment.describe().numerics
    assert told is not None
    assert told.words == (
        "float32 products in ieee, convolutions in ieee, deterministic, CUBLAS_WORKSPACE_CONFIG=:4096:8, "
        "NVIDIA_TF32_OVERRIDE=0"
    )
