from kernelgate import Extension, Kernel, Output


class RowSums(Kernel):
    build = Extension("csrc/row_sums")
    cases = [dict(M=4096, N=8192, dtype="fp32"), dict(M=64, N=262144, dtype="fp32")]
    fuzz = dict(M=range(1, 300), N=range(1, 9000), dtype=("fp32",))
    independent = dict(x=0, out=0)

    def inputs(self, case, draw):
        return dict(x=draw(case.M, case.N))

    def outputs(self, case, x):
        return Output(case.M, dtype="fp32")

    def call(self, ops, case, out, x):
        ops.row_sums(out, x)

    def oracle(self, case, x):
        return x.sum(1)
