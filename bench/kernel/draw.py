"""Random inputs: `draw(M, N)` in a card gives values in the case's dtype, from today's distribution."""

from __future__ import annotations

from collections.abc import Callable

import torch

from kernelgate.bench.core.dtypes import DTYPES, known
from kernelgate.bench.kernel import axes as case_axes
from kernelgate.bench.kernel.card import NONFINITE, CaseAxes

TORCH_DTYPES: dict[str, torch.dtype] = {name: getattr(torch, facts.torch_name) for name, facts in DTYPES.items()}
TINY = 2.0**-12
LARGE = 2.0**8
FP8_TINY, FP8_LARGE = 2.0**-4, 2.0**3
"""An 8-bit float has no room for more."""


class Draw:
    """A source of random tensors for one case. Equal seeds give equal tensors on one device."""

    def __init__(self, case: CaseAxes, device: str, seed: int, distribution: str = "normal") -> None:
        self.case = case
        self.device = device
        self.distribution = distribution
        self.generator = torch.Generator(device).manual_seed(seed)
        self._dtype = case_axes.dtype(case)

    @property
    def dtype(self) -> torch.dtype:
        """The case's."""
        return TORCH_DTYPES[self._dtype]

    def __call__(self, *shape: int, dtype: str | None = None) -> torch.Tensor:
        """Values of today's distribution, in `dtype` or the case's."""
        name = known(dtype or self._dtype)
        of_integers = not TORCH_DTYPES[name].is_floating_point
        return self._whole_numbers(name, shape) if of_integers else self.round(self._reals(name, shape), name)

    def normal(self, *shape: int) -> torch.Tensor:
        """Standard normal, in float32, whatever today's distribution is."""
        return torch.randn(shape, generator=self.generator, device=self.device)

    def uniform(self, low: float, high: float, *shape: int) -> torch.Tensor:
        """From `low` to `high`, in float32, whatever today's distribution is."""
        return low + (high - low) * torch.rand(shape, generator=self.generator, device=self.device)

    def integers(self, low: int, high: int, *shape: int, dtype: str = "int64") -> torch.Tensor:
        """Whole numbers from `low` to `high` - 1, such as indices, whatever today's distribution is."""
        made = torch.randint(low, high, shape, generator=self.generator, device=self.device)
        return made.to(TORCH_DTYPES[known(dtype)])

    def round(self, tensor: torch.Tensor, dtype: str | None = None) -> torch.Tensor:
        """The tensor in `dtype` or the case's; what is too large for it becomes its largest number."""
        wanted = TORCH_DTYPES[known(dtype or self._dtype)]
        if wanted.is_floating_point and wanted.itemsize == 1:
            most = torch.finfo(wanted).max
            tensor = tensor.clamp(-most, most)
        return tensor.to(wanted)

    def _reals(self, dtype: str, shape: tuple[int, ...]) -> torch.Tensor:
        narrow = DTYPES[dtype].bits == 8
        ways: dict[str, Callable[[], torch.Tensor]] = {
            "normal": lambda: self.normal(*shape),
            "peaked": lambda: self.normal(*shape),
            NONFINITE: lambda: self.normal(*shape),  # what is not finite comes into it later: nonfinite.py
            "uniform": lambda: self.uniform(-1, 1, *shape),
            "large": lambda: (FP8_LARGE if narrow else LARGE) * self.normal(*shape),
            "tiny": lambda: (FP8_TINY if narrow else TINY) * self.normal(*shape),
            "mixed": lambda: self.normal(*shape) * torch.exp2(self.uniform(-6, 2, *shape[:-1], 1)),
            "special": lambda: self._special_reals(dtype, shape),
        }
        return ways[self.distribution]()

    def _special_reals(self, dtype: str, shape: tuple[int, ...]) -> torch.Tensor:
        """Normal values, of which a fifth are zeros, ones and the smallest numbers, of either sign; some rows are 0."""
        finfo = torch.finfo(TORCH_DTYPES[dtype])
        special = torch.tensor([0.0, -0.0, 1.0, -1.0, finfo.tiny, -finfo.tiny, finfo.smallest_normal / 4, 2.0])
        chosen = special.to(self.device)[self.integers(0, len(special), *shape)]
        values = torch.where(self.uniform(0, 1, *shape) < 0.2, chosen, self.normal(*shape))
        return values * (self.uniform(0, 1, *shape[:-1], 1) >= 0.2)

    def _whole_numbers(self, dtype: str, shape: tuple[int, ...]) -> torch.Tensor:
        """ "large" are the two ends, "special" these, -1, 0 and 1, "tiny" -1, 0 and 1; the others up to what the
        distribution's name suggests."""
        wanted = TORCH_DTYPES[dtype]
        if wanted is torch.bool:
            return self.integers(0, 2, *shape, dtype=dtype)
        low, high = torch.iinfo(wanted).min, torch.iinfo(wanted).max
        if self.distribution == "uniform":
            return self.integers(low, high, *shape, dtype=dtype)
        if self.distribution == "special":
            return torch.tensor([low, low + 1, -1 if low else 1, 0, 1, high - 1, high], device=self.device)[
                self.integers(0, 7, *shape)
            ].to(wanted)
        if self.distribution == "large":
            # One end for each row, so that sums of products grow as large as they can.
            rows = (*shape[:-1], 1) if len(shape) > 1 else shape
            return torch.where(self.uniform(0, 1, *rows) < 0.5, low, high).expand(shape).to(wanted)
        size = {"tiny": 0.5, "mixed": 16.0}.get(self.distribution, 40.0)
        return (size * self.normal(*shape)).round().clamp(max(low, -128), min(high, 127)).to(wanted)
