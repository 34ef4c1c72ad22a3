"""Random outputs: a seed is an input, so that a call can be repeated; the outputs must fit each other and the coin."""

import torch

from kernelgate import Extension, Kernel, Output


class Dropout(Kernel):
    build = Extension("csrc/dropout*")
    cases = [dict(M=4, N=8, dtype="fp32")]
    cpu_cases = cases
    fuzz = dict(M=range(1, 20), N=(7, 64))

    def inputs(self, case, draw):
        return dict(x=draw(case.M, case.N), seed=int(draw.integers(0, 2**31, 1)))

    def outputs(self, case, x, seed):
        return dict(out=Output(case.M, case.N), mask=Output(case.M, case.N, dtype="bool"))

    def call(self, ops, case, out, mask, x, seed):
        ops.dropout(x, seed, out, mask)

    def oracle(self, case, x, seed):  # another throw of the coin: compare says what may differ
        mask = torch.rand(x.shape, device=x.device) < 0.5
        return torch.where(mask, 2 * x, 0), mask

    def compare(self, case, name, out, expected, inputs, outputs):
        kept = outputs["mask"]
        if name == "out":
            return out == torch.where(kept, 2 * inputs["x"], 0).to(out.dtype)
        # Five standard deviations of as many throws of a coin, and one throw.
        return abs(float(kept.double().sum()) - kept.numel() / 2) <= 2.5 * kept.numel() ** 0.5 + 1
