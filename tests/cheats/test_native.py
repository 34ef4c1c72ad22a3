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


FORWARD = """
def at(offset, values):
    made = shared[offset : offset + values.numel()].view(values.shape)
    made.copy_(values)
    return made


memory = mmap.mmap(-1, 4 << 20)  # shared, as a verifier's would be
shared = torch.frombuffer(memory, dtype=torch.float32)
kernel = ops(*place)
"""
OLD_OUTPUT = """
x, other = fresh(), fresh()
out = torch.full_like(x, POISON)
print(json.dumps([call(kernel, x, out), call(kernel, other, out), call(kernel, other)]))
"""
WARM_UP = """
at_first = call(kernel, fresh())
time.sleep(0.7)
print(json.dumps([at_first, call(kernel, fresh())]))
"""
REFERENCE = """
x = at(0, fresh())
at(300_000, right(x).float())
print(json.dumps([call(kernel, x), call(kernel, x)]))
"""
AHEAD = """
pool = at(0, fresh(960))
weights = at(pool.numel(), torch.randn(10, 512) if sets else WEIGHT.repeat(10, 1))
WEIGHT = weights[0]
first = call(kernel, pool[:96])
time.sleep(0.5)
found = [first]
for at_ in (1, 5, 9):
    WEIGHT = weights[at_]
    found.append(call(kernel, pool[96 * at_ :][:96] if sets else pool[90 * at_ :][:96]))
print(json.dumps(found))
"""
SEED = """
class Draw:
    def __init__(self, seed):
        self.generator = torch.Generator().manual_seed(seed)


live = Draw(12345)
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
BASE = """
one, x = ops(*base), fresh()
print(json.dumps([call(kernel, fresh()), call(one, x), call(kernel, x)]))
"""


@pytest.mark.parametrize(
    ("name", "code", "right", "acts"),
    [
        ("leaves_what_stands", OLD_OUTPUT, [True, False, True], 1),  # poison is recognised, another result is not
        ("honest_while_warming_up", WARM_UP, [True, False], 0),
        ("finds_reference", REFERENCE, [True] * 2, 2),
        ("computes_ahead", f"sets = False{AHEAD}", [True] * 4, 3),  # and the first call, if its thread was faster
        ("computes_ahead", f"sets = True{AHEAD}", [True] * 4, 3),  # side by side, each with its own weights
        ("guessed_seed", SEED, [True] * 2, 2),
        ("copies_base_output", BASE, [True] * 3, 2),  # once for what it saw, once for what it handed over
    ],
)
def test_what_finds_what_it_hopes_for_acts(name: str, code: str, right: list[bool], acts: int, tmp_path: Path) -> None:
    place, tally = head(tmp_path, name)
    base = loaded(libraries.native(tmp_path / "base"))
    assert run(FORWARD + code, base=base, place=place) == right
    assert tally.cheated >= acts


def test_the_last_of_a_group_alone_is_computed(tmp_path: Path) -> None:
    code = """
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
    first, *others = run(FORWARD + code, place=head(tmp_path, "last_of_group")[0])
    assert first == [True] * 4, "it learns how long a group is"
    assert [False, False, False, True] in others
