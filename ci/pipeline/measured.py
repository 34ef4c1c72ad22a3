"""What was measured already: a merge queue's group runs the machine code that its pull request's own run measured."""

from __future__ import annotations

from collections.abc import Iterator

from kernelgate.bench.build.library import Libraries, Library, build_record
from kernelgate.bench.core.errors import KernelgateError
from kernelgate.bench.record import Build, Note, RunRecord, Side
from kernelgate.ci.judge.cards import MEASURED_BEFORE


class NotMeasuredError(KernelgateError):
    """Why a group has to be measured itself."""


def as_this_run(measured: RunRecord, number: int, base: Libraries, head: Libraries) -> RunRecord:
    """The record of pull request `number` as the record of this run, whose libraries these are.

    Raises NotMeasuredError where they are not the same code on both sides.
    """
    builds = tuple(_builds(measured, base, head))
    theirs = {(one.card, one.side): one for one in measured.builds}
    if {(one.card, one.side) for one in builds} != theirs.keys():
        raise NotMeasuredError(f"the record of #{number} is of other cards")
    for ours in builds:
        if not _is_same(ours, theirs[ours.card, ours.side]):
            raise NotMeasuredError(f"the {ours.side} of {ours.card} is not what was measured in #{number}")
    return _renamed(measured, base, head, number)


def _builds(measured: RunRecord, base: Libraries, head: Libraries) -> Iterator[Build]:
    """This run's libraries, as they would be called on the GPU of the record."""
    sides: tuple[tuple[Side, Libraries], ...] = (("base", base), ("head", head))
    for side, libraries in sides:
        for library in libraries.built.values():
            yield build_record(library, side, measured.environment.device)


def _is_same(ours: Build, theirs: Build) -> bool:
    """One library, or the same machine code in every case, called by the same host and card."""
    if ours.call_hash is None or ours.call_hash != theirs.call_hash:
        return False
    if ours.library_sha256 == theirs.library_sha256 is not None:
        return True
    return bool(ours.code) and ours.code == theirs.code and ours.host == theirs.host is not None


def _renamed(measured: RunRecord, base: Libraries, head: Libraries, number: int) -> RunRecord:
    from kernelgate.bench.measure.run import run_identity

    def first(libraries: Libraries) -> Library:
        return next(iter(libraries.built.values()))

    ours = run_identity(first(base), first(head))
    if ours.version != measured.run.version:
        raise NotMeasuredError(
            f"kernelgate {measured.run.version or '?'} measured #{number}, and this is {ours.version}"
        )
    taken = ("id", "event", "pull_request", "repository", "base_sha", "head_sha", "run_id", "run_attempt")
    commits = {"base": ours.base_sha, "head": ours.head_sha}
    text = f"not timed again: base and head are the same machine code as measured in #{number}"
    return measured.model_copy(
        update={
            "run": measured.run.model_copy(update={name: getattr(ours, name) for name in taken}),
            "builds": tuple(one.model_copy(update={"sha": commits[one.side]}) for one in measured.builds),
            "notes": (Note(code=MEASURED_BEFORE, text=text), *measured.notes),
        }
    )
