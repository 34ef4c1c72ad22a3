"""Top-k: values are exact and in order, indices point at them, and none comes twice. A sort by key is k = N."""

from kernelgate import Extension, Kernel, Output


class TopK(Kernel):
    build = Extension("csrc/top_k*")
    cases = [dict(M=4, N=8, K=3, dtype="fp32")]
    cpu_cases = cases
    fuzz = dict(M=range(1, 20), N=(7, 64), K=3)

    def inputs(self, case, draw):
        return dict(x=draw(case.M, case.N))

    def outputs(self, case, x):
        return dict(values=Output(case.M, case.K), indices=Output(case.M, case.K, dtype="int64"))

    def call(self, ops, case, values, indices, x):
        ops.top_k(x, values, indices)

    def oracle(self, case, x):
        return x.topk(case.K)

    def compare(self, case, name, out, expected, inputs, outputs):
        if name == "values":
            return out == expected
        known = (out >= 0) & (out < case.N)
        found = inputs["x"].gather(-1, out.clamp(0, case.N - 1))
        alone = out.sort(-1).values.diff() != 0
        return bool(known.all()) and bool((found == outputs["values"]).all()) and bool(alone.all())
