from torch.nn.functional import scaled_dot_product_attention

from kernelgate import Extension, Kernel


class Attention128(Kernel):
    build = Extension("csrc/attention128*")
    cases = [dict(S=s, B=4, H=8, D=128, dtype="fp32") for s in (512, 1024)]
    cpu_cases = [dict(S=128, B=1, H=4, D=128, dtype="fp32")]
    fuzz = dict(S=range(1, 200), B=range(1, 3), H=range(1, 4), D=128)
    distributions = ("normal", "uniform", "tiny", "peaked")
    independent = dict(q=(0, 1), k=(0, 1), v=(0, 1), out=(0, 1))

    def inputs(self, case, draw):
        return {name: draw(case.B, case.H, case.S, case.D) for name in "qkv"}

    def call(self, ops, case, out, q, k, v):
        ops.forward(out, q, k, v)

    def oracle(self, case, q, k, v):
        return scaled_dot_product_attention(q, k, v)

    def flops(self, case):
        return 4 * case.B * case.H * case.S**2 * case.D
