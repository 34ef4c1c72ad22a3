"""A backward pass: `state` makes what the forward pass saved, outside of the clock."""

import torch

from kernelgate import Extension, Kernel, Output


class RMSNormBackward(Kernel):
    build = Extension("csrc/rms_norm*")
    cases = [dict(M=4, N=8, dtype="fp32")]
    cpu_cases = cases
    fuzz = dict(M=range(1, 20), N=(7, 64))

    def inputs(self, case, draw):
        return dict(x=draw(case.M, case.N), weight=draw(case.N), dy=draw(case.M, case.N))

    def state(self, case, x, weight, dy):
        return dict(rstd=(x.float().square().mean(-1) + 1e-6).rsqrt())

    def outputs(self, case, x, weight, dy):
        return dict(dx=Output(case.M, case.N), dweight=Output(case.N))

    def call(self, ops, case, dx, dweight, x, weight, dy, rstd):
        ops.rms_norm_backward(dx, dweight, x, weight, dy, rstd)

    def oracle(self, case, x, weight, dy):
        x, weight = x.detach().requires_grad_(), weight.detach().requires_grad_()
        with torch.enable_grad():
            out = x / (x.square().mean(-1, keepdim=True) + 1e-6).sqrt() * weight
        return torch.autograd.grad(out, (x, weight), dy)
