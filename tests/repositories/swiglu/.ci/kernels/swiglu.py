from math import inf, nan

from torch.nn.functional import silu

from kernelgate import Kernel, Package


class SwiGLU(Kernel):
    build = Package("my_kernels")
    cases = [dict(T=t, F=f, dtype=dtype) for dtype in ("bf16", "fp16") for t in (4096, 512) for f in (14336, 4096)]
    suites = dict(ladder=[dict(T=32 << step, F=4096, dtype="bf16") for step in range(8)])
    fuzz = dict(T=range(1, 300), F=range(1, 5000), dtype=("bf16", "fp16"))
    limits = dict(T=range(0, 2**17), F=range(0, 2**16))
    independent = dict(gate=0, up=0, out=0)

    def inputs(self, case, draw):
        # Only gate has values of any size: the product of two large ones would not fit into float16.
        return dict(gate=draw(case.T, case.F), up=draw.round(draw.normal(case.T, case.F)))

    def call(self, package, case, out, gate, up):
        package.swiglu.swiglu(gate, up, out)

    def oracle(self, case, gate, up):
        return silu(gate) * up

    def nonfinite(self, case):
        # A gate of -Inf is -Inf times 0, which an oracle may call NaN or 0.
        return dict(gate=[nan, inf], up=[nan, inf, -inf])

    def flops(self, case):
        return 5 * case.T * case.F
