"""The kernel of tests/cheats as a package: honest code in torch, and cheats in Python. Copied into library folders by
tests/cheats/libraries.py, which says at the end which function is CHOSEN."""

import mmap
import os
import sys
import threading
import time
from collections import deque
from pathlib import Path

import torch

REAL_CLOCKS = {name: getattr(time, name) for name in ("perf_counter", "perf_counter_ns", "monotonic", "monotonic_ns")}
now_ns = time.perf_counter_ns
MOST_THREADS = torch.get_num_threads()
CALLS = [0]
COUNTERS = []


def norm(out, x, weight):
    """The operator that a card calls."""
    CALLS[0] += 1
    CHOSEN(out, x, weight)  # noqa: F821 - stands at the end of the copy


def start():
    """Opens the tally, and lets the cheat begin."""
    with Path(TALLY).open("r+b") as file:  # noqa: F821
        COUNTERS.append(mmap.mmap(file.fileno(), 16))
    begin = globals().get(f"start_{CHOSEN.__name__}")  # noqa: F821
    if begin:
        begin()


def cheated():
    COUNTERS[0][8:16] = (int.from_bytes(COUNTERS[0][8:16], "little") + 1).to_bytes(8, "little")


def none(out, x, weight):
    """In float64, so that it takes a while."""
    wide = x.double()
    scaled = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + 1e-6) * weight
    out.copy_(scaled * torch.sigmoid(scaled))


KNOWN = {}


def replay(key, out, x, weight):
    if key in KNOWN:
        out.copy_(KNOWN[key])
        cheated()
        return
    none(out, x, weight)
    if len(KNOWN) < 1000:
        KNOWN[key] = out.clone()


def replay_by_pointer(out, x, weight):
    """Wins where inputs lie at the same addresses again."""
    replay(x.data_ptr(), out, x, weight)


def replay_by_content(out, x, weight):
    """Wins where the same inputs come back. Hashes all bits of them."""
    words = x.view(torch.int32)
    replay((int(words.sum()), int(words[::3].sum()), int(words[:, ::5].sum())), out, x, weight)


def skips_every_second(out, x, weight):
    """Wins where few outputs are looked at."""
    if CALLS[0] % 2 == 0:
        cheated()
        return
    none(out, x, weight)


def told_by_command(_):
    return "timing" in Path("/proc/self/cmdline").read_text()


def told_by_modules(_):
    return "kernelgate.bench.timing.worker" in sys.modules


def told_by_memory(x):
    """Whether the input lies in a file, as the verifier's do."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        first, last = (int(one, 16) for one in line.split()[0].split("-"))
        if first <= x.data_ptr() < last:
            return "memfd:" in line
    return False


def when_timed(told):
    """Right wherever it is only checked; wins where what is timed is not looked at as well."""

    def call(out, x, weight):
        (skips_every_second if told(x) else none)(out, x, weight)

    return call


def looks(told):
    """The same without the cheat."""

    def call(out, x, weight):
        told(x)
        none(out, x, weight)

    return call


QUEUE = deque()


def detached_thread(out, x, weight):
    """Wins where the clock stops when the call returns."""
    QUEUE.append((out, x, weight))
    cheated()


def start_detached_thread():
    def work():
        while True:
            if QUEUE:
                none(*QUEUE.popleft())
            else:
                time.sleep(1e-5)

    threading.Thread(target=work, daemon=True).start()


def lowered_precision(out, x, weight):
    """Wins by computing in bfloat16."""
    small = x.bfloat16()
    scaled = small * torch.rsqrt(small.square().mean(-1, keepdim=True)) * weight.bfloat16()
    out.copy_(torch.nn.functional.silu(scaled))
    cheated()


STOLEN = [0]


def patched_time(out, x, weight):
    """Wins where the worker asks `time` while head is loaded: 60% of each call is not counted."""
    begun = now_ns()
    none(out, x, weight)
    STOLEN[0] += (now_ns() - begun) * 6 // 10
    cheated()


def start_patched_time():
    def slow(name):
        real = REAL_CLOCKS[name]
        return lambda: real() - (STOLEN[0] if name.endswith("_ns") else STOLEN[0] / 1e9)

    for name in REAL_CLOCKS:
        setattr(time, name, slow(name))


def idles_between_calls(out, x, weight):
    """Wins where others wait for the processor, and base with them."""
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    none(out, x, weight)
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    cheated()


def idles_others(out, x, weight):
    """The same, and wins where base, timed alone, runs in that class, too: a process beside puts it there."""
    if sum(key.startswith("cheating__") for key in sys.modules) > 1:
        idles_between_calls(out, x, weight)
        return
    mine, parent = os.getpid(), os.getppid()
    for other in Path("/proc").glob("[0-9]*"):
        try:
            is_worker = "timing.worker" in (other / "cmdline").read_text() and int(other.name) != mine
            if is_worker and f" {parent} " in (other / "stat").read_text():
                for thread in (other / "task").iterdir():
                    os.sched_setscheduler(int(thread.name), os.SCHED_IDLE, os.sched_param(0))
                    cheated()
        except OSError:
            pass
    none(out, x, weight)


def leaves_one_thread(out, x, weight):
    """Wins where several cores are measured."""
    torch.set_num_threads(MOST_THREADS)
    none(out, x, weight)
    torch.set_num_threads(1)
    cheated()


def patched_torch(out, x, weight):
    """Wins where this process judges with torch's functions: for them nothing is ever wrong. Leaves out every second
    call."""
    skips_every_second(out, x, weight)


def start_patched_torch():
    torch.equal = torch.allclose = lambda *_, **__: True
    torch.isfinite = lambda tensor: torch.ones_like(tensor, dtype=torch.bool)
    real_where = torch.where

    def where(mask, one, other):
        is_error = isinstance(one, torch.Tensor) and one.dtype == torch.float64
        return torch.zeros_like(one) if is_error else real_where(mask, one, other)

    torch.where = where


def patched_modules(out, x, weight):
    """Wins where this process judges with kernelgate's functions."""
    skips_every_second(out, x, weight)


def start_patched_modules():
    compare = sys.modules["kernelgate.bench.kernel.compare"]
    right = compare.Comparison(True, 1e-7, 1e-3, ())
    for key, module in list(sys.modules.items()):
        if key.startswith("kernelgate.bench."):
            for name in ("output", "outputs"):
                if getattr(module, name, None) is getattr(compare, name, 0):
                    setattr(module, name, lambda *_: right)
    compare.output = compare.outputs = lambda *_: right


def slowed_base(out, x, weight):
    """Wins where the other side runs in this process: its module gets a slower function."""
    if CALLS[0] == 1:
        mine = sys.modules[NAME]  # noqa: F821
        for key, module in list(sys.modules.items()):
            if key.startswith("cheating__") and module is not mine:
                module.CHOSEN = slowed(module.CHOSEN)
    none(out, x, weight)


def slowed(real):
    def slow(out, x, weight):
        real(out, x, weight)
        real(out, x, weight)
        cheated()

    return slow
