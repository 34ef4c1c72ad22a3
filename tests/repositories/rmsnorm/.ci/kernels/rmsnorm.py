from math import inf, nan

from kernelgate import Extension, Kernel


class RMSNorm(Kernel):
    build = Extension("csrc/rmsnorm*")
    cases = [dict(M=m, N=n, dtype="fp16") for m in (4096, 512) for n in (4096, 1024, 8192)]
    cpu_cases = [dict(M=512, N=4096, dtype="fp32"), dict(M=512, N=4096, dtype="bf16")]
    suites = dict(ladder=[dict(M=32 << step, N=4096, dtype="fp16") for step in range(8)])
    fuzz = dict(M=range(1, 600), N=range(1, 8400), dtype=("fp16", "bf16", "fp32"))
    limits = dict(M=range(0, 2**17), N=range(0, 2**16))
    independent = dict(x=0, out=0)

    def inputs(self, case, draw):
        return dict(x=draw(case.M, case.N), weight=draw(case.N))

    def call(self, ops, case, out, x, weight):
        ops.rms_norm(out, x, weight, 1e-6)

    def oracle(self, case, x, weight):  # on a GPU, torch's rms_norm turns a whole row with an Inf into NaN
        return x / (x.square().mean(-1, keepdim=True) + 1e-6).sqrt() * weight

    def nonfinite(self, case):
        return dict(x=[nan, inf, -inf], weight=[nan, inf, -inf])

    def flops(self, case):
        return 4 * case.M * case.N
