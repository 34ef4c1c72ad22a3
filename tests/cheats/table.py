"""Every cheat: how it would win, and what must come of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum


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


@dataclass(frozen=True)
class Cheat:
    name: str
    expected: Ending
    wins: str
    """Because …"""
    words: str = ""
    """The library's configuration, where the name is not all. `{payloads}` and `{folder}` are filled in."""
    rounds: int = 40
    long: bool = False
    """Whether a sample is to be one long call, so that what follows it is the other side's. On a GPU."""
    must_act: bool | None = None
    """Whether the library must have counted an act, else the test would show nothing. None: unless NOTHING_TO_GAIN."""
    where: str = ""


def _at(where: str, *cheats: Cheat) -> tuple[Cheat, ...]:
    return tuple(replace(one, where=where) for one in cheats)


WRONG, CONTRADICTED, NOTHING = Ending.WRONG_OUTPUT, Ending.CONTRADICTED, Ending.NOTHING_TO_GAIN

NATIVE = _at(
    "extension, CPU",
    # Memory. Where inputs never come back, such a kernel finds nothing and is honest.
    Cheat("replay_by_pointer", NOTHING, "inputs lie at the same addresses again"),
    Cheat("replay_by_fingerprint", NOTHING, "16 words tell inputs apart"),
    Cheat("replay_by_content", NOTHING, "the same inputs come back"),
    Cheat("replay_by_row", NOTHING, "windows on one pool share rows, and no input is whole the same", must_act=True),
    Cheat(
        "guessed_seed",
        NOTHING,
        "inputs are drawn where head can see the generator, or from a small seed",
        "cheat=recall payload={payloads}/guessed_seed.py words=96,512",
    ),
    Cheat("copies_base_output", NOTHING, "base computes the same inputs a moment earlier"),
    Cheat("finds_reference", NOTHING, "references, or base's outputs, lie in shared memory"),
    Cheat("leaves_what_stands", NOTHING, "the output still holds an earlier call's"),
    # Work that is left out.
    Cheat("skips_every_second", WRONG, "the last call of a sample alone is looked at", "cheat=skips_every_nth n=2"),
    Cheat("skips_every_50th", WRONG, "2% of calls are seldom looked at", "cheat=skips_every_nth n=50", rounds=100),
    Cheat("last_of_group", NOTHING, "the last call of a group alone is looked at"),
    Cheat("skips_rows", WRONG, "four of 96 rows, in half of the calls, are seldom looked at"),
    Cheat(
        "honest_while_warming_up",
        NOTHING,
        "calls are looked at early",
        "cheat=honest_while_warming_up ms=500",
        rounds=100,
    ),
    Cheat("idle_while_warming_up", WRONG, "nobody looks at calls while the device warms up"),
    Cheat("changes_inputs", WRONG, "the reference is computed from inputs that the kernel has set to zero"),
    # Work that is done later.
    Cheat("detached_thread", CONTRADICTED, "the clock stops when the call returns"),
    Cheat("computed_when_read", CONTRADICTED, "reading the output does the work, after the clock has stopped"),
    # Work that is done before it is asked for.
    Cheat("computes_ahead", NOTHING, "a thread computes all inputs that lie in shared memory, before their calls come"),
    Cheat(
        "computes_ahead_apart",
        NOTHING,
        "the same in a process of its own, which goes on where the measured one is stopped",
    ),
    # The other side's outputs, and both sides' inputs.
    Cheat("spoils_neighbour", WRONG, "base's output, which lies just before head's, is wrong"),
    Cheat("own_inputs", WRONG, "what is right for zeros is known, and both sides read them"),
    # Less work than the tolerance allows.
    Cheat("lowered_precision", WRONG, "an exponential of five bits is nearly right"),
    Cheat("partial_reduction", WRONG, "the mean of a quarter of a row is nearly right"),
    Cheat("recognised_shape", WRONG, "the shape that is timed is not fuzzed"),
    # Clocks.
    Cheat("patched_clock", CONTRADICTED, "clock_gettime in all tables leaves out 60% of head's time"),
    Cheat(
        "patched_timer",
        Ending.HARMLESS,
        "Python's clocks, and what kernelgate keeps of them, leave out 60% of head's time",
        "cheat=steals_time payload={payloads}/patched_timer.py",
    ),
    # The other side.
    Cheat("slowed_base_by_table", CONTRADICTED, "base's torch_parallel_for waits 80 µs"),
    Cheat("slowed_base_by_code", CONTRADICTED, "a jump over base's kernel leads to a slower one"),
    Cheat("trashes_cache", Ending.HARMLESS, "a thread sweeps through memory while base works"),
    Cheat("left_over_work", CONTRADICTED, "signals make the thread spin in which base works"),
    # Messages, judgement, record.
    Cheat(
        "forged_messages",
        CONTRADICTED,
        "the parent believes lines that head writes into its pipe",
        "cheat=forged_messages words={folder}/forged.jsonl",
    ),
    Cheat("rewritten_messages", CONTRADICTED, "head's times are halved on their way out, in the table of write()"),
    Cheat(
        "patched_messages",
        CONTRADICTED,
        "head's times are halved on their way out, in Python",
        "cheat=none payload={payloads}/patched_messages.py",
        must_act=False,
    ),
    Cheat("stops_verifier", CONTRADICTED, "work goes on after the calls have returned, and nobody looks meanwhile"),
    Cheat(
        "batches_not_held",
        CONTRADICTED,
        "a batch in which head does not win is made again, since the device had to wait for the host",
        "cheat=none payload={payloads}/chosen_batches.py words=held",
        must_act=False,
    ),
    Cheat(
        "batches_without_times",
        CONTRADICTED,
        "a batch in which head does not win has no times",
        "cheat=none payload={payloads}/chosen_batches.py words=times",
        must_act=False,
    ),
    Cheat(
        "rewritten_record",
        Ending.HARMLESS,
        "a process that head started rewrites the record whenever it changes",
        "cheat=rewritten_record script={payloads}/rewritten_record.py python={python}",
        must_act=False,
    ),
    Cheat(
        "patched_checker",
        WRONG,
        "what compares outputs in head's process finds them right; every second call does nothing",
        "cheat=skips_every_nth n=2 payload={payloads}/patched_checker.py",
    ),
    # No cheat.
    Cheat("torch_operators", Ending.TRUE_GAIN, "torch's own operators, as an oracle calls them, are faster"),
)

PACKAGE = _at(
    "package, CPU",
    Cheat("replay_by_pointer", NOTHING, "inputs lie at the same addresses again"),
    Cheat("replay_by_content", NOTHING, "the same inputs come back"),
    Cheat("skips_every_second", WRONG, "the last call of a sample alone is looked at"),
    Cheat("detached_thread", CONTRADICTED, "the clock stops when the call returns"),
    Cheat("lowered_precision", WRONG, "bfloat16 is nearly right"),
    Cheat("patched_time", Ending.HARMLESS, "`time` leaves out 60% of head's calls"),
    Cheat("patched_torch", WRONG, "torch's own functions judge, and head has replaced them"),
    Cheat("patched_modules", WRONG, "kernelgate's functions judge, and head has replaced them"),
    Cheat("idles_between_calls", Ending.HARMLESS, "base runs in Linux's idle class, which head leaves for its calls"),
    Cheat("idles_others", CONTRADICTED, "so does base where it is timed alone, in a process that head's reaches"),
    Cheat("leaves_one_thread", Ending.HARMLESS, "base has one thread of torch, and head all"),
    Cheat("slowed_base", CONTRADICTED, "base's function is replaced by one that works twice"),
    # What is right where it is fuzzed, and leaves out every second call where it is timed; and its honest twin.
    *(
        one
        for told in ("told_by_command", "told_by_modules", "told_by_memory")
        for one in (
            Cheat(f"when_timed({told})", WRONG, "only what is fuzzed is looked at"),
            Cheat(
                f"looks({told})", Ending.TRUE_GAIN, "it is told whether it is timed, and does the same", must_act=False
            ),
        )
    ),
)

CUDA = _at(
    "extension, CUDA",
    Cheat("replay_by_pointer", NOTHING, "inputs lie at the same addresses again"),
    Cheat("replay_by_fingerprint", NOTHING, "the device compares 32 words with an earlier call's"),
    Cheat("skips_every_second", WRONG, "the last call of a sample alone is looked at", "cheat=skips_every_nth n=2"),
    Cheat("skips_every_50th", WRONG, "2% of calls are seldom looked at", "cheat=skips_every_nth n=50", rounds=100),
    Cheat("skips_blocks", WRONG, "1/24 of the rows, in half of the calls, are seldom looked at"),
    Cheat("empty_graph", WRONG, "graphs are never looked at: nothing is launched while one is captured"),
    Cheat("side_stream", CONTRADICTED, "events on the current stream do not see work on another one"),
    Cheat("default_stream", NOTHING, "the current stream is one that does not wait for the legacy stream"),
    Cheat("late_thread", CONTRADICTED, "a thread launches the kernel when the events have been recorded"),
    Cheat("patched_elapsed_time", CONTRADICTED, "cudaEventElapsedTime in all tables tells head's events shorter"),
    Cheat("patched_event_record", CONTRADICTED, "cudaEventRecord in all tables records head's end before its work"),
    Cheat("written_by_host", CONTRADICTED, "a thread computes on the host, and copies the result to the device"),
    Cheat("trashes_l2", Ending.HARMLESS, "a kernel on a side stream sweeps through L2 while base works", long=True),
    Cheat(
        "left_over_work",
        CONTRADICTED,
        "a kernel on a side stream keeps multiprocessors busy while base works",
        long=True,
    ),
    Cheat("lowered_precision", WRONG, "half precision sums are nearly right"),
    Cheat("recognised_shape", WRONG, "the shape that is timed is not fuzzed"),
)

ALL = (*NATIVE, *PACKAGE, *CUDA)
