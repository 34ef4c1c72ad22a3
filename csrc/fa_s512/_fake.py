"""What the operators return, without computing it: for torch.compile, torch.export and torch.library.opcheck."""

from __future__ import annotations

import torch
from torch import Tensor


def register_fake(namespace: str) -> None:
    """Afterwards the operators of the library that is loaded under `namespace` can be traced."""
    torch.library.register_fake(f"{namespace}::forward", _forward)
    torch.library.register_fake(f"{namespace}::forward_out", _forward_out)


def _forward(q: Tensor, *_: object, **__: object) -> Tensor:
    return torch.empty_like(q)


def _forward_out(*_: object, **__: object) -> None:
    return None
