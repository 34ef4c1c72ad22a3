"""Attention forward for head dimension 64: softmax(q kᵀ · scale) v for each batch element and head on its own."""

from itertools import product
from math import nan

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

from kernelgate import Extension, Kernel, between

TINY, LARGE = 2.0**-12, 2.0**8
MAX_SCORES = 2**28  # held at once: 2 GiB in float64
EDGES = (1, 4, 32, 63, 64, 65, 127, 128, 192, 256, 513, 1024)
AROUND = tuple(product((448, 512, 640), (16, 32, 48), (4, 8, 16)))


def case(seq, batch, heads, dtype="fp16", causal=False):
    return dict(S=seq, B=batch, H=heads, D=64, dtype=dtype, causal=causal)


def target_first(cases):
    return sorted(cases, key=lambda one: one != case(512, 32, 8))


class Attention(Kernel):
    build = Extension("csrc/attention")
    cases = [
        *target_first(case(512, batch, heads) for batch, heads in product((16, 32, 48), (4, 8, 16))),
        case(512, 32, 8, causal=True),
        case(512, 32, 8, "bf16"),
    ]
    cpu_cases = [case(512, 1, 8, "fp32"), case(512, 1, 8, "fp32", causal=True)]
    suites = {
        "full": target_first(case(*sizes) for sizes in AROUND),
        "ladder": [case(32 << step, 32, 8) for step in range(8)],  # from hardly any work to 4,096 keys
        "smoke": [case(32, 1, 2)],
    }
    # Ragged lengths, so that masks and edges are met.
    sanitize = [case(65, 1, 2), case(129, 2, 1, "bf16", causal=True)]
    fuzz = dict(D=64, causal=(False, True), scale=(0.125, between(1 / 32, 1 / 4)))
    limits = dict(S=range(1, 4097), B=range(0, 1025), H=range(0, 1025), scale=between(-2, 2))
    distributions = ("normal", "uniform", "large", "tiny", "mixed", "peaked")
    independent = dict(q=(0, 1), k=(0, 1), v=(0, 1), out=(0, 1))

    def configurations(self, device):
        """27 around S=512, whose S is ragged, and 12 edges; a CPU runs them with fewer batches and heads."""
        fewer_batches, fewer_heads = (16, 4) if device == "cpu" else (1, 1)
        dtypes = dict(dtype=("fp32", "fp16", "bf16") if device == "cpu" else ("fp16", "bf16"))
        around = {
            f"s{seq}_b{batch}_h{heads}": dict(
                S=(seq, range(seq - 40, seq), range(seq + 1, seq + 41)),
                B=batch // fewer_batches,
                H=heads // fewer_heads,
                **dtypes,
            )
            for seq, batch, heads in AROUND
        }
        return {**around, **{f"edge_s{seq}": dict(S=seq, B=2, H=3, **dtypes) for seq in EDGES}}

    def inputs(self, case, draw):
        shape = (case.B, case.H, case.S, case.D)
        if draw.distribution == "uniform":
            # Values of one sign, so that outputs are not near zero.
            return dict(q=draw(*shape), k=draw(*shape), v=draw.round(draw.uniform(0, 1, *shape)))
        if draw.distribution == "large":
            # Scores beyond 88, where exp without the maximum taken off overflows, whatever the scale, and values in the
            # hundreds.
            usual = min(1, 0.125 / max(abs(self.scale(case)), 0.125))
            q, k, v = (draw.round(size * draw.normal(*shape)) for size in (8 * usual, 4, LARGE))
            return dict(q=q, k=k, v=v)
        if draw.distribution == "mixed":
            lows_highs = dict(q=(-6, 2), k=(-6, 2), v=(-8, 0))
            return {name: draw.round(self.rows(draw, shape, *ends)) for name, ends in lows_highs.items()}
        if draw.distribution == "peaked":
            return self.peaked(case, draw, shape)
        return dict(q=draw(*shape), k=draw(*shape), v=draw(*shape))

    def rows(self, draw, shape, low, high):
        """Rows of very different size side by side: a power of two for each."""
        return draw.normal(*shape) * torch.exp2(draw.uniform(low, high, *shape[:3], 1))

    def peaked(self, case, draw, shape):
        """Each query sees almost only one key, at random among those it may see: a wrong index gives a wrong row."""
        k, v = draw.normal(*shape), draw.normal(*shape)
        chosen = (draw.uniform(0, 1, *shape[:3]) * case.S).long().clamp_(max=case.S - 1)
        if case.causal:
            chosen = chosen % torch.arange(1, case.S + 1, device=chosen.device)
        q = torch.gather(k, 2, chosen.unsqueeze(-1).expand(shape)) * (24 / (case.D * (self.scale(case) or 1)))
        return dict(q=draw.round(q), k=draw.round(k), v=draw.round(v))

    def scale(self, case):
        """PyTorch's own default where the case has none."""
        return case.get("scale", case.D**-0.5)

    def call(self, ops, case, out, q, k, v):
        ops.forward_out(q, k, v, out, self.scale(case), case.causal)

    def oracle(self, case, q, k, v):
        """PyTorch's plain backend. Heads are taken in slices, to bound the memory for scores."""
        flat = [tensor.flatten(0, 1) for tensor in (q, k, v)]
        step = max(1, MAX_SCORES // max(1, q.shape[2]) ** 2)
        out = torch.empty_like(flat[0])
        with sdpa_kernel(SDPBackend.MATH):
            for start in range(0, len(out), step):
                part = slice(start, start + step)
                out[part] = self.reference(case, *(tensor[part] for tensor in flat))
        return out.reshape(q.shape)

    def reference(self, case, q, k, v):
        """The backend that PyTorch chooses by itself. It allocates its output: it has no `out` argument."""
        return scaled_dot_product_attention(q, k, v, is_causal=case.causal, scale=self.scale(case))

    def atol_scale(self, case, expected):
        """An output is linear in the values, whose size the distribution says."""
        return {"tiny": TINY, "large": LARGE}.get(case.get("distribution"), 1.0)

    def nonfinite(self, case):
        """A masked key's weight of 0 times NaN is NaN, or nothing where the key is never read: with a mask only q."""
        return dict(q=[nan]) if case.causal else dict(q=[nan], k=[nan], v=[nan])

    def flops(self, case):
        """Two products for each query, visible key and channel. Exponentials are not counted, as is the custom."""
        pairs = case.S * (case.S + 1) // 2 if case.causal else case.S * case.S
        return 4 * case.B * case.H * case.D * pairs

    def label(self, case):
        sizes = [f"{axis}={case[axis]}" for axis in "SBHD" if (axis, case[axis]) != ("D", 64)]
        words = [*sizes, case.dtype, "causal" if case.causal else ""]
        return " ".join(filter(None, words))

    def tile(self, rows, columns, stages, warps):
        """Queries, and keys and values for each stage, as csrc/attention/mma_sync lays them out in shared memory. A
        thread holds its share of scores and output in float32, and its queries in halves."""
        step = 16 * warps
        if rows == 0 or rows % step:
            return f"{warps} warps take {step} queries at a time; {rows} is not a multiple of {step}"
        if columns == 0 or columns % 16:
            return f"keys are taken 16 at a time; {columns} is not a multiple of 16"
        if stages < 2:
            return f"{stages} stages: at least 2, one is read while the next arrives"
        share = rows // warps
        registers = share * columns // 32 + share * 64 // 32 + share * 64 // 32 // 2
        shared_bytes = (rows + 2 * stages * columns) * 64 * 2
        return dict(shared_bytes=shared_bytes, threads=warps * 32, registers=registers)
