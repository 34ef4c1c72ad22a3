"""Native cheats that kernelgate leaves nothing to gain would act where it did not: called directly, without its timing.

What changes a process has one of its own; the others share one. Nothing here asserts how long anything takes, save
where the cheat is about nothing else.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kernelgate.bench.build.library import Library
from tests.cheats import judged, libraries, table
from tests.cheats.libraries import Tally

pytestmark = [pytest.mark.slow, pytest.mark.guards("bench/", "ci/judge/", "tests/cheats/")]
ROOT = Path(__file__).parents[2]
PRELUDE = """
import json, mmap, os, sys, time
import torch
from torch.nn.functional import rms_norm, silu

torch.set_num_threads(1)
WEIGHT = torch.randn(512)
POISON = float("nan")


def ops(folder, namespace):
    torch.ops.load_library(folder + "/kernel.so")
    return getattr(torch.ops, namespace)


def right(x, weight=WEIGHT):
    x, weight = x.double(), weight.double()
    return silu(rms_norm(x, weight.shape, weight, 1e-6))


def is_right(out, x, weight=WEIGHT):
    return bool(((out - right(x, weight)).abs() <= 2e-4 + 2e-4 * right(x, weight).abs()).all())


def fresh(rows=96):
    return torch.randn(rows, 512)


def call(ops, x, out=None):
    out = torch.full_like(x, POISON) if out is None else out
    ops.norm(out, x, WEIGHT)
    return is_right(out, x, WEIGHT)
"""


def run(code: str, **values: Any) -> Any:
    """What the code, which may use `values`, says on its last line as JSON."""
    text = "\n".join([PRELUDE, *(f"{name} = {value!r}" for name, value in values.items()), code])
    done = subprocess.run([sys.executable, "-c", text], cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def loaded(library: Library) -> tuple[str, str]:
    return str(library.folder), library.manifest.namespace


def head(folder: Path, name: str) -> tuple[tuple[str, str], Tally]:
    """The library of a cheat, by its name in the table."""
    cheat = next(one for one in table.NATIVE if one.name == name)
    tally = Tally.at(folder / f"{name}.tally")
    return loaded(libraries.native(folder / name, judged.words(cheat, folder, tally))), tally


OUTPUTS = """
found = {}
for name, place in heads.items():
    kernel = ops(*place)
    one, pool = fresh(), fresh(400)
    found[name] = {
        "first": call(kernel, one),
        "again": [call(kernel, one) for _ in range(4)],
        "changed": (one.copy_(fresh()), call(kernel, one))[1],
        "overlapping": [call(kernel, pool[at : at + 96]) for at in range(0, 300, 50)],
        "others": [call(kernel, fresh()) for _ in range(9)],
    }
print(json.dumps(found))
"""


def test_what_remembers_acts_where_inputs_come_back(tmp_path: Path) -> None:
    """And is right then; what goes by the content always is."""
    by_content = ("replay_by_content", "replay_by_row")
    heads = {name: head(tmp_path, name) for name in ("replay_by_pointer", "replay_by_fingerprint", *by_content)}
    found = run(OUTPUTS, heads={name: place for name, (place, _) in heads.items()})
    for name, (_, tally) in heads.items():
        one = found[name]
        assert all([one["first"], *one["again"]]), name
        assert tally.cheated >= 4, name
        assert one["changed"] == (name != "replay_by_pointer"), "the same address, other values"
        assert name not in by_content or all([*one["overlapping"], *one["others"]]), name


def test_what_leaves_an_old_output_standing(tmp_path: Path) -> None:
    code = """
kernel, x, other = ops(*place), fresh(), fresh()
out = torch.full_like(x, POISON)
print(json.dumps([call(kernel, x, out), call(kernel, other, out), call(kernel, other)]))
"""
    place, tally = head(tmp_path, "leaves_what_stands")
    assert run(code, place=place) == [True, False, True], "poison is recognised, another result is not"
    assert tally.cheated == 1


def test_the_last_of_a_group_alone_is_computed(tmp_path: Path) -> None:
    code = """
kernel = ops(*place)
right_ = []
for _ in range(4):
    xs = [fresh() for _ in range(4)]
    outs = [torch.full_like(x, POISON) for x in xs]
    time.sleep(0.001)
    for x, out in zip(xs, outs):
        kernel.norm(out, x, WEIGHT)
    right_.append([is_right(out, x) for x, out in zip(xs, outs)])
print(json.dumps(right_))
"""
    place, _ = head(tmp_path, "last_of_group")
    first, *others = run(code, place=place)
    assert first == [True] * 4, "it learns how long a group is"
    assert [False, False, False, True] in others


def test_a_warm_up_is_honest(tmp_path: Path) -> None:
    code = """
honest = ops(*place)
at_first = call(honest, fresh())
time.sleep(0.7)
print(json.dumps([at_first, call(honest, fresh())]))
"""
    assert run(code, place=head(tmp_path, "honest_while_warming_up")[0]) == [True, False]


SHARED = """
memory = mmap.mmap(-1, 4 << 20)  # shared, as a verifier's would be
shared = torch.frombuffer(memory, dtype=torch.float32)


def at(offset, values):
    made = shared[offset : offset + values.numel()].view(values.shape)
    made.copy_(values)
    return made


"""


def test_a_reference_in_shared_memory_is_found(tmp_path: Path) -> None:
    code = """
kernel, x = ops(*place), at(0, fresh())
at(300_000, right(x).float())
print(json.dumps([call(kernel, x), call(kernel, x)]))
"""
    place, tally = head(tmp_path, "finds_reference")
    assert run(SHARED + code, place=place) == [True, True]
    assert tally.cheated == 2


@pytest.mark.parametrize("inputs", ["pool", "sets"])
def test_inputs_that_lie_ready_are_computed_ahead(inputs: str, tmp_path: Path) -> None:
    """Windows on one pool, whose weights are all alike, and whole sets side by side, each with its own."""
    code = """
kernel, pool = ops(*place), at(0, fresh(960))
weights = at(pool.numel(), torch.randn(10, 512) if inputs == "sets" else WEIGHT.repeat(10, 1))
WEIGHT = weights[0]
first = call(kernel, pool[:96])
time.sleep(0.5)
found = [first]
for at_ in (1, 5, 9):
    WEIGHT = weights[at_]
    found.append(call(kernel, pool[96 * at_ :][:96] if inputs == "sets" else pool[90 * at_ :][:96]))
print(json.dumps(found))
"""
    place, tally = head(tmp_path, "computes_ahead")
    assert run(SHARED + code, place=place, inputs=inputs) == [True] * 4
    assert tally.cheated >= 3, "the first call, too, if the thread was faster"


def test_a_seed_that_is_guessed(tmp_path: Path) -> None:
    code = """
class Draw:
    def __init__(self, seed):
        self.generator = torch.Generator().manual_seed(seed)


live = Draw(12345)
kernel = ops(*place)
time.sleep(3)
guessed, found = torch.Generator().manual_seed(2), []
for generator in (guessed, live.generator):
    x = torch.randn(96, 512, generator=generator)
    weight = torch.randn(512, generator=generator)
    out = torch.full_like(x, POISON)
    kernel.norm(out, x, weight)
    found.append(is_right(out, x, weight))
print(json.dumps(found), flush=True)
os._exit(0)
"""
    place, tally = head(tmp_path, "guessed_seed")
    assert run(code, place=place) == [True, True]
    assert tally.cheated == 2


def test_base_is_watched(tmp_path: Path) -> None:
    code = """
one, other = ops(*base), ops(*place)
x = fresh()
print(json.dumps([call(other, fresh()), call(one, x), call(other, x)]))
"""
    place, tally = head(tmp_path, "copies_base_output")
    assert run(code, base=loaded(libraries.native(tmp_path / "base")), place=place) == [True] * 3
    assert tally.cheated == 2, "once for what it saw, once for what it handed over"
