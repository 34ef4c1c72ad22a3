"""Every cheat: how it would win, and what must come of it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Literal


class Ending(Enum):
    """What must come of a cheat. Whatever it is, none is faster, and none that acted is judged to be the same."""

    WRONG_OUTPUT = "wrong output"
    """The reason names a wrong output, or the run is refused."""
    CONTRADICTED = "contradicted"
    """The reason names a contradiction with the witness, or a wrong output, or the run is refused."""
    NOTHING_TO_GAIN = "nothing to gain"
    """Honest where what it hopes for is not there, and then judged like any kernel. Where more than 2% of its calls
    were not honest, it is not called the same."""
    HARMLESS = "harmless"
    """It acts, and may change nothing: the same, slower or accused."""
    TRUE_GAIN = "true gain"
    """No cheat after all: must not be accused of anything, and may be faster."""


Where = Literal["extension, CPU", "package, CPU", "extension, CUDA"]


@dataclass(frozen=True)
class Cheat:
    name: str
    wins: str
    """Because …"""
    where: Where
    expected: Ending
    words: str = ""
    """The library's configuration; of a package the name is all. `{payloads}` and `{folder}` are filled in."""
    rounds: int = 40
    long: bool = False
    """Whether a sample is to be one long call, so that what follows it is the other side's. On a GPU."""
    must_act: bool = True
    """Whether the library must have counted an act: else the test would show nothing."""


def _native(name: str, expected: Ending, wins: str, words: str = "", **more: object) -> Cheat:
    return Cheat(name, wins, "extension, CPU", expected, words or f"cheat={name}", **more)  # type: ignore[arg-type]


def _package(name: str, expected: Ending, wins: str, **more: object) -> Cheat:
    return Cheat(name, wins, "package, CPU", expected, **more)  # type: ignore[arg-type]


def _cuda(name: str, expected: Ending, wins: str, words: str = "", **more: object) -> Cheat:
    return Cheat(name, wins, "extension, CUDA", expected, words or f"cheat={name}", **more)  # type: ignore[arg-type]


WRONG, CONTRADICTED, NOTHING = Ending.WRONG_OUTPUT, Ending.CONTRADICTED, Ending.NOTHING_TO_GAIN

NATIVE = (
    # Memory. Where inputs never come back, such a kernel finds nothing and is honest.
    _native("replay_by_pointer", NOTHING, "inputs lie at the same addresses again", must_act=False),
    _native("replay_by_fingerprint", NOTHING, "16 words tell inputs apart", must_act=False),
    _native("replay_by_content", NOTHING, "the same inputs come back", must_act=False),
    _native("replay_by_row", NOTHING, "windows on one pool share rows, although no input is whole the same"),
    _native(
        "guessed_seed",
        NOTHING,
        "inputs are drawn where head can see the generator, or from a small seed",
        "cheat=recall payload={payloads}/guessed_seed.py words=96,512",
        must_act=False,
    ),
    _native("copies_base_output", NOTHING, "base computes the same inputs a moment earlier", must_act=False),
    _native("finds_reference", NOTHING, "references, or base's outputs, lie in shared memory", must_act=False),
    _native("leaves_what_stands", NOTHING, "the output still holds an earlier call's", must_act=False),
    # Work that is left out.
    _native("skips_every_second", WRONG, "the last call of a sample alone is looked at", "cheat=skips_every_nth n=2"),
    _native("skips_every_50th", WRONG, "2% of calls are seldom looked at", "cheat=skips_every_nth n=50", rounds=100),
    _native("last_of_group", NOTHING, "the last call of a group alone is looked at", must_act=False),
    _native("skips_rows", WRONG, "four of 96 rows, in half of the calls, are seldom looked at"),
    _native(
        "honest_while_warming_up",
        NOTHING,
        "calls are looked at early",
        "cheat=honest_while_warming_up ms=500",
        rounds=100,
        must_act=False,
    ),
    _native("idle_while_warming_up", WRONG, "nobody looks at calls while the device warms up"),
    _native("changes_inputs", WRONG, "the reference is computed from inputs that the kernel has set to zero"),
    # Work that is done later.
    _native("detached_thread", CONTRADICTED, "the clock stops when the call returns"),
    _native("computed_when_read", CONTRADICTED, "reading the output does the work, after the clock has stopped"),
    # Work that is done before it is asked for.
    _native(
        "computes_ahead",
        NOTHING,
        "a thread computes all inputs that lie in shared memory, before their calls come",
        must_act=False,
    ),
    _native(
        "computes_ahead_apart",
        NOTHING,
        "the same in a process of its own, which goes on where the measured one is stopped",
        must_act=False,
    ),
    # The other side's outputs, and both sides' inputs.
    _native("spoils_neighbour", WRONG, "base's output, which lies just before head's, is wrong"),
    _native("own_inputs", WRONG, "what is right for zeros is known, and both sides read them"),
    # Less work than the tolerance allows.
    _native("lowered_precision", WRONG, "an exponential of five bits is nearly right"),
    _native("partial_reduction", WRONG, "the mean of a quarter of a row is nearly right"),
    _native("recognised_shape", WRONG, "the shape that is timed is not fuzzed"),
    # Clocks.
    _native("patched_clock", CONTRADICTED, "clock_gettime in all tables leaves out 60% of head's time"),
    _native(
        "patched_timer",
        Ending.HARMLESS,
        "Python's clocks, and what kernelgate keeps of them, leave out 60% of head's time",
        "cheat=steals_time payload={payloads}/patched_timer.py",
    ),
    # The other side.
    _native("slowed_base_by_table", CONTRADICTED, "base's torch_parallel_for waits 80 µs"),
    _native("slowed_base_by_code", CONTRADICTED, "a jump over base's kernel leads to a slower one"),
    _native("trashes_cache", Ending.HARMLESS, "a thread sweeps through memory while base works"),
    _native("left_over_work", CONTRADICTED, "signals make the thread spin in which base works"),
    # Messages, judgement, record.
    _native(
        "forged_messages",
        CONTRADICTED,
        "the parent believes lines that head writes into its pipe",
        "cheat=forged_messages words={folder}/forged.jsonl",
    ),
    _native("rewritten_messages", CONTRADICTED, "head's times are halved on their way out, in the table of write()"),
    _native(
        "patched_messages",
        CONTRADICTED,
        "head's times are halved on their way out, in Python",
        "cheat=none payload={payloads}/patched_messages.py",
        must_act=False,
    ),
    _native("stops_verifier", CONTRADICTED, "work goes on after the calls have returned, and nobody looks meanwhile"),
    _native(
        "batches_not_held",
        CONTRADICTED,
        "a batch in which head does not win is made again, since the device had to wait for the host",
        "cheat=none payload={payloads}/chosen_batches.py words=held",
        must_act=False,
    ),
    _native(
        "batches_without_times",
        CONTRADICTED,
        "a batch in which head does not win has no times",
        "cheat=none payload={payloads}/chosen_batches.py words=times",
        must_act=False,
    ),
    _native(
        "rewritten_record",
        Ending.HARMLESS,
        "a process that head started rewrites the record whenever it changes",
        "cheat=rewritten_record script={payloads}/rewritten_record.py python={python}",
        must_act=False,
    ),
    _native(
        "patched_checker",
        WRONG,
        "what compares outputs in head's process finds them right; every second call does nothing",
        "cheat=skips_every_nth n=2 payload={payloads}/patched_checker.py",
    ),
    # No cheat.
    _native("torch_operators", Ending.TRUE_GAIN, "torch's own operators, as an oracle calls them, are faster"),
)

PACKAGE = (
    _package("replay_by_pointer", NOTHING, "inputs lie at the same addresses again", must_act=False),
    _package("replay_by_content", NOTHING, "the same inputs come back", must_act=False),
    _package("skips_every_second", WRONG, "the last call of a sample alone is looked at"),
    _package("detached_thread", CONTRADICTED, "the clock stops when the call returns"),
    _package("lowered_precision", WRONG, "bfloat16 is nearly right"),
    _package("patched_time", Ending.HARMLESS, "`time` leaves out 60% of head's calls"),
    _package("patched_torch", WRONG, "torch's own functions judge, and head has replaced them"),
    _package("patched_modules", WRONG, "kernelgate's functions judge, and head has replaced them"),
    _package(
        "idles_between_calls", Ending.HARMLESS, "base runs in Linux's idle class, which head leaves for its calls"
    ),
    _package("leaves_one_thread", Ending.HARMLESS, "base has one thread of torch, and head all"),
    _package("slowed_base", CONTRADICTED, "base's function is replaced by one that works twice"),
)

CUDA = (
    _cuda("replay_by_pointer", NOTHING, "inputs lie at the same addresses again", must_act=False),
    _cuda("replay_by_fingerprint", NOTHING, "the device compares 32 words with an earlier call's", must_act=False),
    _cuda("skips_every_second", WRONG, "the last call of a sample alone is looked at", "cheat=skips_every_nth n=2"),
    _cuda("skips_every_50th", WRONG, "2% of calls are seldom looked at", "cheat=skips_every_nth n=50", rounds=100),
    _cuda("skips_blocks", WRONG, "1/24 of the rows, in half of the calls, are seldom looked at"),
    _cuda("empty_graph", WRONG, "graphs are never looked at: nothing is launched while one is captured"),
    _cuda("side_stream", CONTRADICTED, "events on the current stream do not see work on another one"),
    _cuda(
        "default_stream",
        NOTHING,
        "the current stream is one that does not wait for the legacy stream",
        must_act=False,
    ),
    _cuda("late_thread", CONTRADICTED, "a thread launches the kernel when the events have been recorded"),
    _cuda("patched_elapsed_time", CONTRADICTED, "cudaEventElapsedTime in all tables tells head's events shorter"),
    _cuda("patched_event_record", CONTRADICTED, "cudaEventRecord in all tables records head's end before its work"),
    _cuda("written_by_host", CONTRADICTED, "a thread computes on the host, and copies the result to the device"),
    _cuda("trashes_l2", Ending.HARMLESS, "a kernel on a side stream sweeps through L2 while base works", long=True),
    _cuda(
        "left_over_work",
        CONTRADICTED,
        "a kernel on a side stream keeps multiprocessors busy while base works",
        long=True,
    ),
    _cuda("lowered_precision", WRONG, "half precision sums are nearly right"),
    _cuda("recognised_shape", WRONG, "the shape that is timed is not fuzzed"),
)

ALL = (*NATIVE, *PACKAGE, *CUDA)
