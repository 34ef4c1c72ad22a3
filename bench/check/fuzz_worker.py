"""Runs fuzz trials in a process of its own. Started and read by check/fuzz.py.

Each trial runs the kernel twice, on fresh inputs, into an output that was filled with NaN the first time and with a
finite number the second: an element that still holds both was never written, another NaN is the kernel's own. The
output lies between guards that must stay as they were, the inputs between NaNs that a read past their ends would bring
into the output.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from kernelgate.bench.build import library
from kernelgate.bench.build.library import ForwardOut
from kernelgate.bench.check.fuzz import Distribution, FuzzRequest, Loaded, Trial, TrialOutcome, Unloadable
from kernelgate.bench.dtypes import DTYPES
from kernelgate.bench.errors import KernelgateError
from kernelgate.bench.kernel import oracle
from kernelgate.bench.kernel.tolerance import TOLERANCES
from kernelgate.bench.system.worker_process import Parent

GUARD = 4096
"""Elements before and after each tensor; a multiple of the kernel's alignment."""
BITS: dict[str, torch.dtype] = {name: getattr(torch, f"int{facts.bits}") for name, facts in DTYPES.items()}
NAN: dict[str, int] = {"fp16": 0x7E5A, "bf16": 0x7FDA, "fp32": 0x7FDA5A5A}
"""Bit patterns that arithmetic does not produce."""
FINITE: dict[str, int] = {"fp16": 0x6B5A, "bf16": 0x475A, "fp32": 0x475A5A5A}
"""About 3800 in float16 and 56,000 in the others."""

TINY = 2.0**-12
LARGE = 2.0**8
VALUE_SCALES: dict[Distribution, float] = {"tiny": TINY, "large": LARGE}
"""Where values are not of unit scale: by which atol is multiplied, since an output is linear in the values."""

Inputs = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


# ----------------------------------------------------------------------------------------------------------------------
# Inputs: q, k and v of shape (B, H, S, 64) in float32, before they are rounded to the trial's dtype
# ----------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Draw:
    """A source of random tensors for one trial."""

    trial: Trial
    device: str
    generator: torch.Generator

    def normal(self) -> torch.Tensor:
        return torch.randn(self.trial.case.shape, generator=self.generator, device=self.device)

    def uniform(self, low: float, high: float, shape: tuple[int, ...] | None = None) -> torch.Tensor:
        unit = torch.rand(shape or self.trial.case.shape, generator=self.generator, device=self.device)
        return low + (high - low) * unit

    def row_magnitudes(self, low_exponent: float, high_exponent: float) -> torch.Tensor:
        """A power of two for each row."""
        return torch.exp2(self.uniform(low_exponent, high_exponent, (*self.trial.case.shape[:3], 1)))


def _normal(draw: Draw) -> Inputs:
    return draw.normal(), draw.normal(), draw.normal()


def _uniform(draw: Draw) -> Inputs:
    return draw.uniform(-1, 1), draw.uniform(-1, 1), draw.uniform(0, 1)


def _large(draw: Draw) -> Inputs:
    """Scores beyond 88, where exp without the maximum taken off overflows, and values in the hundreds."""
    return 8 * draw.normal(), 4 * draw.normal(), LARGE * draw.normal()


def _tiny(draw: Draw) -> Inputs:
    """Partly subnormal in float16."""
    return TINY * draw.normal(), TINY * draw.normal(), TINY * draw.normal()


def _mixed(draw: Draw) -> Inputs:
    """Rows from 2^-6 to 4 and values from 2^-8 to 1 side by side."""
    q, k, v = _normal(draw)
    return q * draw.row_magnitudes(-6, 2), k * draw.row_magnitudes(-6, 2), v * draw.row_magnitudes(-8, 0)


def _peaked(draw: Draw) -> Inputs:
    """Each query sees almost only one key, at random among those it may see: a wrong index gives a wrong row."""
    k, v = draw.normal(), draw.normal()
    seq = draw.trial.seq
    chosen = (draw.uniform(0, 1, draw.trial.case.shape[:3]) * seq).long().clamp_(max=seq - 1)
    if draw.trial.causal:
        chosen = chosen % torch.arange(1, seq + 1, device=draw.device)
    q = torch.gather(k, 2, chosen.unsqueeze(-1).expand(k.shape))
    return q * (24 / (k.shape[3] * draw.trial.scale)), k, v


DRAWS: dict[Distribution, Callable[[Draw], Inputs]] = {
    "normal": _normal,
    "uniform": _uniform,
    "large": _large,
    "tiny": _tiny,
    "mixed": _mixed,
    "peaked": _peaked,
}


# ----------------------------------------------------------------------------------------------------------------------
# One trial
# ----------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class KernelCall:
    """One call of the kernel and what it left behind."""

    comparison: oracle.Comparison
    untouched: torch.Tensor
    """Where the output still holds the poison."""
    nonfinite: torch.Tensor
    trespass: str | None
    """What the kernel wrote to that was not its output."""


def examine(kernel: ForwardOut, trial: Trial, device: str) -> TrialOutcome:
    """Runs a trial and says what is wrong, the most telling fault first."""
    draw = Draw(trial, device, torch.Generator(device).manual_seed(trial.seed))
    runs = [_run(kernel, draw, poison) for poison in (NAN, FINITE)]
    errors = [run.comparison.max_abs_error for run in runs]
    ratios = [run.comparison.error_ratio for run in runs]
    return TrialOutcome(
        fault=_fault(trial, runs), max_abs_error=oracle.largest(errors), error_ratio=oracle.largest(ratios)
    )


def _run(kernel: ForwardOut, draw: Draw, poison: dict[str, int]) -> KernelCall:
    trial = draw.trial
    dtype, bits = oracle.TORCH_DTYPES[trial.dtype], BITS[trial.dtype]
    originals = tuple(tensor.to(dtype) for tensor in DRAWS[trial.distribution](draw))
    given = [_guarded(trial, dtype, draw.device, NAN[trial.dtype]) for _ in originals]
    for (_, tensor), original in zip(given, originals, strict=True):
        tensor.copy_(original)
    buffer, out = _guarded(trial, dtype, draw.device, poison[trial.dtype])
    kernel(given[0][1], given[1][1], given[2][1], out, trial.scale, trial.causal)
    q, k, v = originals
    expected = oracle.expected(q, k, v, trial.scale, trial.causal)
    compared = oracle.compare(out, expected, TOLERANCES[trial.dtype], VALUE_SCALES.get(trial.distribution, 1.0))
    edges = torch.cat((buffer[:GUARD], buffer[-GUARD:])).view(bits)
    trespass = None
    if bool((edges != poison[trial.dtype]).any()):
        trespass = "memory outside the output"
    for name, (_, tensor), original in zip("qkv", given, originals, strict=True):
        if not torch.equal(tensor, original):
            trespass = f"its input {name}"
    return KernelCall(compared, out.view(bits) == poison[trial.dtype], ~torch.isfinite(out), trespass)


def _guarded(trial: Trial, dtype: torch.dtype, device: str, fill: int) -> tuple[torch.Tensor, torch.Tensor]:
    """A buffer filled with a bit pattern, and the view of it that lies between the guards."""
    shape = trial.case.shape
    buffer = torch.empty(2 * GUARD + torch.Size(shape).numel(), dtype=dtype, device=device)
    buffer.view(BITS[trial.dtype]).fill_(fill)
    return buffer, buffer[GUARD:-GUARD].view(shape)


def _fault(trial: Trial, runs: list[KernelCall]) -> str | None:
    unwritten = runs[0].untouched & runs[1].untouched
    if bool(unwritten.any()):
        return f"{_elements(unwritten)} never written"
    for run in runs:
        if bool(run.nonfinite.any()):
            return f"{_elements(run.nonfinite)} NaN or Inf"
        if run.trespass:
            return f"the kernel wrote to {run.trespass}"
    worst = max((run.comparison for run in runs), key=lambda comparison: comparison.error_ratio or 0.0)
    if worst.passed:
        return None
    where = f"[b, h, s, d] = {list(worst.worst)} of shape {list(trial.case.shape)}"
    return f"error {worst.max_abs_error:.3g}, at {where} {worst.error_ratio:.3g} times what {trial.dtype} allows"


def _elements(mask: torch.Tensor) -> str:
    """Such as "64 elements, the first at [b, h, s, d] = [0, 1, 512, 0], are"."""
    count = int(mask.sum())
    where = f"[b, h, s, d] = {list(oracle.first(mask))}"
    if count == 1:
        return f"the element at {where} is"
    return f"{count} of {mask.numel()} elements, the first at {where}, are"


def _beyond_use(device: str) -> bool:
    """Whether the error was of the kind that a CUDA context does not survive."""
    try:
        if device == "cuda":
            torch.cuda.synchronize()
    except RuntimeError:
        return True
    return False


def main() -> None:
    parent = Parent()
    request = parent.receive(FuzzRequest)
    try:
        kernel = library.load(library.read(request.library))
    except KernelgateError as error:
        parent.send(Unloadable(why=str(error)))
        return
    parent.send(Loaded())
    for trial in request.trials:
        try:
            outcome = examine(kernel, trial, request.device)
        except RuntimeError as error:  # torch reports what a kernel did wrong as RuntimeError
            message = str(error).strip().split("\n")[0]
            fault = f"the kernel raised an error: {message}"
            broken = _beyond_use(request.device)
            outcome = TrialOutcome(fault=fault, max_abs_error=None, error_ratio=None, last=broken)
        parent.send(outcome)
        if outcome.last:
            return


if __name__ == "__main__":
    main()
