"""How torch computes where references and oracles run, set before they do and written down with what they gave."""

from __future__ import annotations

import os
from typing import Any

from kernelgate.bench import record

VARIABLES = ("CUBLAS_WORKSPACE_CONFIG", "NVIDIA_TF32_OVERRIDE")
"""They change what NVIDIA's libraries compute, whatever torch asks of them."""


def pin() -> None:
    """Afterwards, products and convolutions in float32 are of float32, and operators that can repeat their bits do.

    Of operators that cannot, torch warns; new tensors stay uninitialised, for filling them takes time.
    """
    import torch
    import torch.utils.deterministic

    backends: Any = torch.backends  # whose stubs lack half of these
    # Both of torch's ways of saying it: where a card has used one, the other alone leaves a mixture that torch refuses.
    torch.set_float32_matmul_precision("highest")
    backends.cuda.matmul.allow_tf32 = False
    backends.cudnn.allow_tf32 = False
    for level in (backends, backends.cuda.matmul, backends.cudnn, backends.cudnn.conv, backends.cudnn.rnn):
        level.fp32_precision = "ieee"
    backends.cudnn.benchmark = False
    torch.set_deterministic_debug_mode("warn")
    filling: Any = torch.utils.deterministic
    filling.fill_uninitialized_memory = False


def changed() -> str | None:
    """What is set otherwise than `pin` did, such as by a kernel's package that was imported; None where nothing is."""
    now = here()
    pinned = (now.matmul, now.convolution, now.deterministic) == ("ieee", "ieee", True)
    return None if pinned else now.words


def here() -> record.Numerics:
    """What is set in this process."""
    import torch

    backends: Any = torch.backends
    return record.Numerics(
        matmul=backends.cuda.matmul.fp32_precision,
        convolution=backends.cudnn.conv.fp32_precision,
        deterministic=torch.are_deterministic_algorithms_enabled(),
        variables=tuple(f"{name}={os.environ[name]}" for name in VARIABLES if name in os.environ),
    )
