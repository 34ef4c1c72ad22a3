"""Whether the checkout's kernels work on this machine: each is compiled, loaded, and called on its smallest case."""

from __future__ import annotations

from pathlib import Path

from kernelgate.bench import record
from kernelgate.bench.check import fuzz
from kernelgate.bench.core.errors import BuildError, CannotCompileError, KernelgateError
from kernelgate.bench.doctor.check import Level, MachineCheck
from kernelgate.bench.kernel import cards, commit
from kernelgate.bench.kernel.cards import CardFacts, CaseFacts
from kernelgate.bench.system import environment, git

SMOKE = "smoke"
"""The suite that a card may have for this, for every device."""


def kernel_checks(repo: Path, machine: record.Environment) -> list[MachineCheck]:
    """One for each card of the checkout; one that says so where there is none."""
    try:
        root, found = git.root(repo), cards.of_checkout(repo)
    except KernelgateError as error:
        return [_untried(str(error))]
    if not found.cards and not found.mistakes:
        return [_untried(f"{repo} has no cards in {cards.FOLDER}/")]
    mistakes = [MachineCheck("cards", Level.WARNING, str(one), "correct the card") for one in found.mistakes]
    return [*mistakes, *(kernel_check(root, card, machine) for card in found.cards)]


def kernel_check(root: Path, card: CardFacts, machine: record.Environment) -> MachineCheck:
    """What does not compile may be the sources' fault; a library that does not load, or is wrong, makes unfit."""
    name = f"kernel {card.name}"
    try:
        library = commit.build_card(root, "the working tree", card)
    except CannotCompileError as error:
        return MachineCheck(name, Level.WARNING, str(error), "see g++, ninja, nvcc and the variables above")
    except BuildError as error:
        fix = "correct the sources; a commit that compiled: kernelgate build --ref COMMIT"
        return MachineCheck(name, Level.WARNING, str(error), fix)
    case = smallest_case(card, environment.kind(machine))
    if case is None:
        return MachineCheck(name, Level.PASSED, f"compiles; {fuzz.nothing_to_fuzz(card, environment.kind(machine))}")
    try:
        fault = fuzz.try_case(library, card, case, machine)
    except KernelgateError as error:
        fix = "compile it again for this machine: kernelgate build; the torch beside it must be 2.11 or newer"
        return MachineCheck(name, Level.FAILED, str(error), fix)
    if fault:
        fix = f"kernelgate fuzz; where another commit's kernel fails too (fuzz --ref), it is the machine: {RULED_OUT}"
        return MachineCheck(name, Level.FAILED, f"{case.id}: {fault}", fix)
    return MachineCheck(name, Level.PASSED, f"compiles, loads, and is right on {case.id}")


RULED_OUT = "driver, torch, memory errors"


def smallest_case(card: CardFacts, device: environment.DeviceKind) -> CaseFacts | None:
    """By the bytes that it moves, of the suite `smoke`; else of all cases that the card names for such a device."""
    if SMOKE in card.suites:
        return min(card.suites[SMOKE], key=lambda case: case.bytes or 0.0, default=None)
    suites = {name: cases for name, cases in card.suites.items() if (name == "cpu") == (device == "cpu")}
    named = [case for cases in suites.values() for case in cases]
    named += card.sanitize if device == "cuda" else ()
    return min(named, key=lambda case: case.bytes or 0.0, default=None)


def _untried(why: str) -> MachineCheck:
    fix = "run this in a checkout that has cards, to see whether its kernels work here"
    return MachineCheck("kernels", Level.WARNING, f"none was tried: {why}", fix)
