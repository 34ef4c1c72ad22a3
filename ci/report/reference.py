"""The line on a kernel that is far slower than its reference."""

from __future__ import annotations

from kernelgate.ci.document import formatting
from kernelgate.ci.document.model import Code, Line, Mark
from kernelgate.ci.judge import reference
from kernelgate.ci.policy.policy import Gates
from kernelgate.ci.report.gpu import GpuReport


def lines(gpu: GpuReport, gates: Gates) -> tuple[Line, ...]:
    """ "0.31× of PyTorch in S=512: profile first"; nothing where no case is below the policy's minimum."""
    found = reference.far_below(gpu.verdict, gates)
    if gpu.record is None or gpu.is_wrong or not found:
        return ()
    (worst, ratio), others = found[0], len(found) - 1
    name = formatting.reference(gpu.record.cards)
    case = formatting.names(gpu.record.cases, gpu.record.cards).get(worst.key, Code(worst.id))
    beside = f" and {formatting.counted(others, 'more case')} below {gates.reference_min:g}×" if others else ""
    said = f"{beside}: profile before anything else, with "
    return ((Mark.SLIGHT, f" {ratio:.2g}× of {name} in ", case, said, Code("kernelgate profile")),)
