"""What was measured already: a merge queue's group that runs the machine code which its pull request's own run
measured."""

from __future__ import annotations

from kernelgate.bench.build.library import Libraries, build_record
from kernelgate.bench.core.errors import KernelgateError
from kernelgate.bench.record import Note, RunRecord, Side
from kernelgate.ci.judge.cards import MEASURED_BEFORE


def as_this_run(measured: RunRecord, number: int, base: Libraries, head: Libraries) -> RunRecord:
    """The record of pull request `number` as the record of this run, whose libraries these are.

    Raises KernelgateError where they are not the same code on both sides.
    """
    from kernelgate.bench.measure.run import run_identity

    sides: tuple[tuple[Side, Libraries], ...] = (("base", base), ("head", head))
    gpu = measured.environment.device  # on which this run's libraries would be called
    builds = [build_record(library, side, gpu) for side, made in sides for library in made.built.values()]
    theirs = {(one.card, one.side): one for one in measured.builds}
    if {(one.card, one.side) for one in builds} != theirs.keys():
        raise KernelgateError(f"the record of #{number} is of other cards")
    for ours in builds:
        measured_one = theirs[ours.card, ours.side]
        # One library, or the same machine code in every case, called by the same host and card.
        same_code = bool(ours.code) and ours.code == measured_one.code and ours.host == measured_one.host is not None
        same_library = ours.library_sha256 == measured_one.library_sha256 is not None
        if not (same_library or same_code) or ours.call_hash != measured_one.call_hash or ours.call_hash is None:
            raise KernelgateError(f"the {ours.side} of {ours.card} is not what was measured in #{number}")
    first_base, first_head = (next(iter(made.built.values())) for made in (base, head))
    run = run_identity(first_base, first_head)
    if _release(run.version) != _release(measured.run.version):
        raise KernelgateError(f"kernelgate {measured.run.version or '?'} measured #{number}, and this is {run.version}")
    taken = ("id", "event", "pull_request", "repository", "base_sha", "head_sha", "run_id", "run_attempt")
    commits = {"base": run.base_sha, "head": run.head_sha}
    text = f"not timed again: base and head are the same machine code as measured in #{number}"
    return measured.model_copy(
        update={
            "run": measured.run.model_copy(update={name: getattr(run, name) for name in taken}),
            "builds": tuple(one.model_copy(update={"sha": commits[one.side]}) for one in measured.builds),
            "notes": (Note(code=MEASURED_BEFORE, text=text), *measured.notes),
        }
    )


def _release(version: str | None) -> str:
    """Without the commit and its number, which a version has besides where no release is tagged."""
    return (version or "?").partition("+")[0].partition(".dev")[0]
