from kernelgate import Extension, Kernel


class Scale(Kernel):
    build = Extension("csrc/scale*")
    cases = [dict(N=2**24, dtype="fp32")]
    cpu_cases = [dict(N=2**18, dtype="fp32")]
    fuzz = dict(N=range(0, 5000))
    independent = dict(x=0, out=0)

    def inputs(self, case, draw):
        return dict(x=draw(case.N), factor=2.5)

    def call(self, ops, case, out, x, factor):
        ops.scale(out, x, factor)

    def oracle(self, case, x, factor):
        return factor * x

    def flops(self, case):
        return case.N
