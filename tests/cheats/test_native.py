"""Each native cheat does what it says, and the honest kernel is right: called directly, without kernelgate's timing.

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
    lines = [PRELUDE, *(f"{name} = {value!r}" for name, value in values.items()), code]
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(lines)], cwd=ROOT, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def loaded(library: Library) -> tuple[str, str]:
    return str(library.folder), library.manifest.namespace


def head(folder: Path, name: str) -> tuple[tuple[str, str], Tally]:
    """The library of a cheat, by its name in the table."""
    cheat = next(one for one in table.NATIVE if one.name == name)
    tally = Tally.at(folder / f"{name}.tally")
    return loaded(libraries.native(folder / name, judged.words(cheat, folder, tally))), tally


def test_the_honest_kernel_is_right_on_every_shape(tmp_path: Path) -> None:
    code = """
kernel = ops(*base)
shapes = [(m, n) for m in (1, 3, 96, 97) for n in (1, 7, 16, 512, 515)]
wrong = []
for m, n in shapes:
    x, weight = torch.randn(m, n), torch.randn(n)
    out = torch.full_like(x, POISON)
    kernel.norm(out, x, weight)
    if not is_right(out, x, weight):
        wrong.append((m, n))
print(json.dumps(wrong))
"""
    assert run(code, base=loaded(libraries.native(tmp_path / "base"))) == []


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
        "others": [call(kernel, fresh()) for _ in range(100)],
        "small": call(kernel, fresh(5)),
    }
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], dict[str, int]]:
    """Of each cheat that leaves its process alone: which outputs were right, and how often it acted."""
    folder = tmp_path_factory.mktemp("outputs")
    names = [
        *("replay_by_pointer", "replay_by_fingerprint", "replay_by_content", "replay_by_row", "leaves_what_stands"),
        *("skips_every_second", "skips_every_50th", "skips_rows", "lowered_precision", "partial_reduction"),
        *("recognised_shape", "torch_operators", "computed_when_read"),
    ]
    heads = {name: head(folder, name) for name in names}
    found = run(OUTPUTS, heads={name: place for name, (place, _) in heads.items()})
    return found, {name: tally.cheated for name, (_, tally) in heads.items()}


@pytest.mark.parametrize("name", ["replay_by_content", "replay_by_row", "torch_operators", "computed_when_read"])
def test_what_is_always_right_acts_all_the_same(name: str, outputs: Any) -> None:
    found, acts = outputs
    assert acts[name] >= 4
    one = found[name]
    assert all([one["first"], *one["again"], one["changed"], *one["overlapping"], *one["others"], one["small"]])


@pytest.mark.parametrize("name", ["replay_by_pointer", "replay_by_fingerprint"])
def test_what_remembers_is_right_where_inputs_come_back(name: str, outputs: Any) -> None:
    found, acts = outputs
    assert found[name]["first"]
    assert all(found[name]["again"])
    assert acts[name] >= 4
    assert found[name]["changed"] == (name == "replay_by_fingerprint"), "the same address, other values"


def test_what_leaves_work_out_is_wrong_where_it_does(outputs: Any) -> None:
    found, acts = outputs
    assert found["skips_every_second"]["others"].count(False) == 50
    assert found["skips_every_50th"]["others"].count(False) == 2
    assert 20 < found["skips_rows"]["others"].count(False) < 80
    assert not any(found["lowered_precision"]["others"] + found["partial_reduction"]["others"])
    assert not any(found["recognised_shape"]["others"])
    assert found["recognised_shape"]["small"], "another shape is computed as it should be"
    assert acts["skips_every_second"] > 50


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


def test_a_thread_computes_later_and_a_warm_up_is_honest_or_idle(tmp_path: Path) -> None:
    code = """
detached, honest, idle = (ops(*place) for place in places)
x = fresh()
outs = [torch.full_like(x, POISON) for _ in range(50)]
for out in outs:
    detached.norm(out, x, WEIGHT)
at_once = not outs[-1].isnan().any().item()
time.sleep(0.2)
found = [at_once, all(is_right(out, x) for out in outs), call(honest, fresh()), call(idle, fresh())]
time.sleep(0.7)
print(json.dumps([*found, call(honest, fresh()), call(idle, fresh())]))
"""
    names = ("detached_thread", "honest_while_warming_up", "idle_while_warming_up")
    places = [head(tmp_path, name)[0] for name in names]
    assert run(code, places=places) == [False, True, True, False, False, True]


def test_changed_inputs_fit_their_outputs(tmp_path: Path) -> None:
    code = """
kernel, x = ops(*place), fresh()
print(json.dumps([call(kernel, x), float(x.abs().max())]))
"""
    assert run(code, place=head(tmp_path, "changes_inputs")[0]) == [True, 0.0], "right for what the inputs are now"


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


CLOCK = """
def ratio(kernel):
    '''Of head's time by Python's clock to that by the wall's, which is left alone.'''
    x = fresh()
    out = torch.empty_like(x)
    kernel.norm(out, x, WEIGHT)
    begun, wall = time.perf_counter_ns(), time.clock_gettime_ns(time.CLOCK_REALTIME)
    for _ in range(300):
        kernel.norm(out, x, WEIGHT)
    return (time.perf_counter_ns() - begun) / (time.clock_gettime_ns(time.CLOCK_REALTIME) - wall)


"""


@pytest.mark.parametrize("name", ["patched_clock", "patched_timer"])
def test_a_clock_leaves_out_what_head_takes(name: str, tmp_path: Path) -> None:
    code = """
kernel = ops(*place)
print(json.dumps([ratio(kernel), call(kernel, fresh())]))
"""
    place, tally = head(tmp_path, name)
    share, is_right = run(CLOCK + code, place=place)
    assert is_right
    assert tally.cheated >= 300
    assert 0.3 < share < 0.6, "60% are left out"


@pytest.mark.parametrize("name", ["slowed_base_by_table", "slowed_base_by_code"])
def test_base_is_slowed(name: str, tmp_path: Path) -> None:
    code = """
one, other = ops(*base), ops(*place)
call(other, fresh())
print(json.dumps([call(one, fresh()) for _ in range(5)]))
"""
    place, tally = head(tmp_path, name)
    assert run(code, base=loaded(libraries.native(tmp_path / "base")), place=place) == [True] * 5
    assert tally.cheated == 5


def test_base_is_watched(tmp_path: Path) -> None:
    code = """
one, other = ops(*base), ops(*place)
x = fresh()
print(json.dumps([call(other, fresh()), call(one, x), call(other, x)]))
"""
    place, tally = head(tmp_path, "copies_base_output")
    assert run(code, base=loaded(libraries.native(tmp_path / "base")), place=place) == [True] * 3
    assert tally.cheated == 2, "once for what it saw, once for what it handed over"


def test_messages_are_forged_and_rewritten(tmp_path: Path) -> None:
    code = """
out_of, into = os.pipe()
os.environ["PIPE"] = str(into)
asked, ask = os.pipe()
os.dup2(asked, 0)
os.write(ask, b'{"samples":[{"side":"base"},{"side":"head"}]}' + bytes([10]))
forging, rewriting = (ops(*place) for place in places)
call(forging, fresh())
first = os.read(out_of, 100000).decode()
call(rewriting, fresh())
os.read(0, 1000)
os.write(into, b'{"kind":"batch_done","times_us":[10.0,10.0],"held":true}')
print(json.dumps([first, os.read(out_of, 1000).decode()]))
"""
    places = [head(tmp_path, name)[0] for name in ("forged_messages", "rewritten_messages")]
    (tmp_path / "forged.jsonl").write_text('{"kind":"ready"}\n', encoding="utf-8")
    forged, rewritten = run(code, places=places)
    assert forged == '{"kind":"ready"}\n'
    assert json.loads(rewritten) == {"kind": "batch_done", "times_us": [10.0, 5.0], "held": True}


@pytest.mark.parametrize("name", ["trashes_cache", "left_over_work"])
def test_what_works_beside_leaves_outputs_right(name: str, tmp_path: Path) -> None:
    code = """
kernel = ops(*place)
found = []
for _ in range(100):
    x = fresh()
    out = torch.full_like(x, POISON)
    kernel.norm(out, x, WEIGHT)
    begun = time.monotonic()
    while time.monotonic() - begun < 0.002:
        pass
    found.append(is_right(out, x))
print(json.dumps(found))
"""
    place, tally = head(tmp_path, name)
    assert run(code, place=place) == [True] * 100
    assert tally.cheated > 0
