import torch

from kernelgate import Extension, Kernel, Output


class Int8Gemm(Kernel):
    build = Extension("csrc/int8_gemm")
    cases = [dict(M=m, N=n, K=4096, dtype="int8") for m in (4096, 512) for n in (4096, 14336)]
    cpu_cases = [dict(M=128, N=512, K=512, dtype="int8")]
    suites = dict(ladder=[dict(M=32 << step, N=4096, K=4096, dtype="int8") for step in range(8)])
    fuzz = dict(M=range(1, 400), N=range(1, 400), K=range(1, 2000), dtype=("int8",))
    limits = dict(M=range(0, 2**17), N=range(0, 2**17), K=range(0, 2**16))
    independent = dict(a=0, out=0)
    reference_name = "torch._int_mm"

    def inputs(self, case, draw):
        return dict(a=draw(case.M, case.K), b=draw(case.N, case.K))

    def outputs(self, case, a, b):
        return Output(case.M, case.N, dtype="int32")

    def call(self, ops, case, out, a, b):
        ops.int8_gemm(out, a, b)

    def oracle(self, case, a, b):
        # CUDA has no integer matmul; a float64 holds every sum exactly.
        return (a.double() @ b.double().T).to(torch.int32)

    def reference(self, case, a, b):
        taken = case.M > 16 and case.N % 8 == 0 and case.K % 8 == 0  # what _int_mm takes on CUDA
        return torch._int_mm(a, b.T) if taken else self.oracle(case, a, b)

    def flops(self, case):
        return 2 * case.M * case.N * case.K
