"""Reads what a workflow run left behind, as untrusted data.

A pull request decides what its workflow uploads. So nothing of an artifact is written to disk under its own name,
nothing is run, and everything that does not fit is refused with the reason: the archive's form here, the record's by
its schema, and the record's claims about itself by what GitHub's API says of the run.
"""

from __future__ import annotations

import io
import json
import math
import os
import stat
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, NoReturn

from pydantic import Field, ValidationError

from kernelgate.bench import record
from kernelgate.bench.core import errors, files
from kernelgate.bench.core.errors import CompileError, KernelgateError, faults
from kernelgate.bench.record import Model, Positive, Run, RunRecord, timed_cases
from kernelgate.ci.document import formatting
from kernelgate.ci.document.escape import visible
from kernelgate.ci.policy.policy import MOST_PROCESSES

RECORD, FAILURE = "run.json", "failure.json"
MAX_ARCHIVE = 16 * 1024 * 1024
MAX_MEMBER = {RECORD: 8 * 1024 * 1024, FAILURE: 256 * 1024}
"""Bytes. The largest honest record, 27 cases × 5 processes × 100 rounds, has under 2 MiB."""
MAX_CASES = 256
MAX_AXES = 64
MAX_ENTRIES = 4096
"""Of each other list in a record: profiles, resources, builds, fuzz results, accuracies, notes."""
MAX_DIGITS = 20
"""Of a whole number; more than any counter has, and few enough that every later step can reckon with it."""
MAX_SAMPLES = 1_000_000
"""Over all cases, processes and sides: what can be judged in seconds."""
MAX_RATIO = 200
"""Of unpacked to packed bytes; numbers in JSON pack 3 to 5 times."""
MAX_LOG, MAX_LINE, MAX_MESSAGE = 200, 2000, 4000
"""Lines, characters of one, and of the message of a failure note."""

UNREADABLE = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, OSError, ValueError)
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_ENCRYPTED = 0x1


class RefusedError(KernelgateError):
    """An artifact is not what it should be. The message names what and why."""


class FailureNote(Model):
    """Why a job has no record, as the verb that failed wrote it down."""

    schema_: Annotated[Literal["kernelgate.failure/1"], Field(alias="schema")]
    fault: Literal["build", "output", "runner", "ours"]
    message: Annotated[str, Field(min_length=1, max_length=MAX_MESSAGE)]
    verb: Annotated[str, Field(max_length=40)] | None = None
    target: Annotated[str, Field(max_length=40)] | None = None
    run_attempt: Positive | None = None
    log: Annotated[tuple[Annotated[str, Field(max_length=MAX_LINE)], ...], Field(max_length=MAX_LOG)] = ()


def members(data: bytes, name: str = "artifact") -> dict[str, bytes]:
    """The record and the failure note in an artifact's zip file. Raises RefusedError for anything else in it."""
    if len(data) > MAX_ARCHIVE:
        _refuse(name, f"it has {len(data)} bytes, more than {MAX_ARCHIVE}")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            entries = archive.infolist()
            if len(entries) > len(MAX_MEMBER):
                _refuse(name, f"it holds {len(entries)} files; {RECORD} and {FAILURE} are all that may be in it")
            if len({entry.filename for entry in entries}) < len(entries):
                _refuse(name, "it contains duplicate names")
            return {entry.filename: _member(archive, entry, name) for entry in entries}
    except UNREADABLE as error:
        raise RefusedError(f"{name} is refused: it is not a valid zip file ({type(error).__name__})") from None


def _member(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, name: str) -> bytes:
    # The name as it stands in the file: zipfile cuts it at a NUL.
    if entry.filename not in MAX_MEMBER or entry.orig_filename != entry.filename:
        _refuse(name, f"it holds {visible(entry.orig_filename, 80)!r}; only {RECORD} and {FAILURE} may be in it")
    kind = stat.S_IFMT(entry.external_attr >> 16)
    if kind not in (0, stat.S_IFREG):
        _refuse(name, f"{entry.filename} is a {'link' if kind == stat.S_IFLNK else 'special file'}, not a plain file")
    if entry.flag_bits & _ENCRYPTED or entry.compress_type not in _METHODS:
        _refuse(name, f"{entry.filename} is encrypted or packed in an unknown way")
    most = min(MAX_MEMBER[entry.filename], MAX_RATIO * max(1024, entry.compress_size))
    with archive.open(entry) as file:
        # One byte more than allowed: what the header says of the size is not believed.
        content = file.read(most + 1)
    if len(content) > most:
        _refuse(name, f"{entry.filename} unpacks to more than {most} bytes from {entry.compress_size}")
    return content


def _refuse(name: str, why: str) -> NoReturn:
    raise RefusedError(f"{name} is refused: {why}")


def read_file(path: Path, most: int) -> bytes | None:
    """A file of at most so many bytes, where code of others ran; None where there is none. Raises RefusedError."""
    if path.is_symlink() or (path.exists() and not path.is_file()):
        _refuse(path.name, "it is not a plain file")
    try:
        with path.open("rb") as file:
            data = file.read(most + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        _refuse(path.name, f"it cannot be read: {error.strerror}")
    if len(data) > most:
        _refuse(path.name, f"it has more than {most} bytes")
    return data


def checked_record(data: bytes, known: Run, name: str = "artifact") -> RunRecord:
    """The run record in `data`, which belongs to the run that GitHub names. Raises RefusedError."""
    plain_json(data, f"{name}, {RECORD}")
    try:
        found = record.from_json(data, RECORD)
    except KernelgateError as error:
        raise RefusedError(f"{name} is refused: {visible(str(error))}") from None
    # Refuses what would keep the judge busy for longer than its job may take.
    for what, entries, most in _lists(found):
        if len(entries) > most:
            _refuse(name, f"it has {len(entries)} {what}, more than {most}")
    timings = [timing for process in found.processes for timing in process.timings]
    samples = sum(len(side) for timing in timings for side in timing.samples_us.values())
    if samples > MAX_SAMPLES:
        _refuse(name, f"it has {samples} samples, more than {MAX_SAMPLES}")
    _belongs(found, known, name)
    return found


def _lists(found: RunRecord) -> Iterator[tuple[str, Sequence[Any], int]]:
    """What each is called, and how many entries it may have. One by one: of too many cases, none is asked for more."""
    yield "cases", found.cases, MAX_CASES
    yield "cards", found.cards, MAX_CASES
    for case in found.cases:
        yield f"axes of {visible(case.id, 80)!r}", tuple(case.axes), MAX_AXES
    for timed in timed_cases(found):
        yield f"processes of {visible(timed.id, 80)!r}", timed.processes, MOST_PROCESSES
    yield "processes", found.processes, MAX_ENTRIES
    for check in found.checks:
        yield "fuzz results", check.results, MAX_ENTRIES
    yield "accuracies", tuple(one for check in found.checks for one in check.accuracies), MAX_ENTRIES
    yield "checks", found.checks, MAX_ENTRIES
    yield "profiles", found.profile, MAX_ENTRIES
    yield "builds", found.builds, MAX_ENTRIES
    for build in found.builds:
        yield "kernels of a build", build.kernels, MAX_ENTRIES
    yield "notes", found.notes, MAX_ENTRIES


def checked_failure(data: bytes, name: str = "artifact") -> FailureNote:
    plain_json(data, f"{name}, {FAILURE}")
    try:
        return FailureNote.model_validate_json(data)
    except ValidationError as error:
        raise RefusedError(f"{name} is refused: {FAILURE} does not fit its schema: {visible(faults(error))}") from None


def _belongs(found: RunRecord, known: Run, name: str) -> None:
    """Refuses a record of another commit, pull request, repository, run or GPU than `known` from GitHub's API."""
    run = found.run
    if run.head_sha is None:
        _refuse(name, "the record does not say which commit it measured")
    commits = {"head": known.head_sha, "base": known.base_sha}
    facts: tuple[tuple[str, Any, Any], ...] = (
        ("commit", run.head_sha, known.head_sha),
        ("base commit", run.base_sha, known.base_sha),
        ("pull request", run.pull_request, known.pull_request),
        ("repository", run.repository, known.repository),
        ("run", run.run_id, known.run_id),
        ("GPU", run.gpu, known.gpu),
        *((f"commit of the {one.side}'s build", one.sha, commits.get(one.side)) for one in found.builds),
    )
    for what, stated, fact in facts:
        if stated is not None and fact is not None and stated != fact:
            are_commits = formatting.is_commit(str(stated)) and formatting.is_commit(str(fact))
            # Two commits by as much as tells them apart.
            short = 7 if are_commits and str(stated)[:7] != str(fact)[:7] else None
            shown = visible(str(stated)[:short], 80)
            _refuse(name, f"the record is of another {what}: it says {shown}, GitHub says {str(fact)[:short]}")
    # Where failed jobs are run again, the others keep what they left in an earlier attempt.
    if run.run_attempt is not None and known.run_attempt is not None and run.run_attempt > known.run_attempt:
        _refuse(name, f"the record is of another attempt: it says {run.run_attempt}, GitHub says {known.run_attempt}")
    if run.pull_request is not None and known.pull_request is None:
        _refuse(name, f"the record names pull request {run.pull_request}, GitHub knows none for this run")
    has_base = any("base" in timing.samples_us for process in found.processes for timing in process.timings)
    if run.base_sha is None and known.base_sha is not None and has_base:
        _refuse(name, "the record does not say which commit its base is")


def plain_json(data: bytes, name: str) -> None:
    """Refuses what JSON does not have (NaN, Infinity) and what readers understand differently (a key twice)."""

    def constant(text: str) -> NoReturn:
        _refuse(name, f"{text} is not a JSON number")

    def number(text: str) -> float:
        if math.isinf(value := float(text)):
            _refuse(name, f"{text[:40]} is not finite")
        return value

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        keys = dict(pairs)
        if len(keys) < len(pairs):
            twice, _ = Counter(key for key, _ in pairs).most_common(1)[0]
            _refuse(name, f"the key {visible(twice, 80)!r} stands twice in one object")
        return keys

    def whole(text: str) -> int:
        if len(text) > MAX_DIGITS:
            _refuse(name, f"{text[:40]} has more than {MAX_DIGITS} digits")
        return int(text)

    try:
        json.loads(
            data.decode("utf-8"), parse_constant=constant, parse_float=number, parse_int=whole, object_pairs_hook=unique
        )
    except RecursionError:
        _refuse(name, "it is nested too deeply")
    except (UnicodeDecodeError, ValueError) as error:
        _refuse(name, f"it is not JSON in UTF-8: {visible(str(error), 200)}")


VARIABLE = "KERNELGATE_FAILURE"


def note(error: KernelgateError, verb: str, environment: Mapping[str, str] = os.environ) -> None:
    """The first failure of a job is written down; a later one follows from it. Raises OutputError."""
    name = environment.get(VARIABLE)
    if not name or Path(name).exists():
        return
    attempt = environment.get("GITHUB_RUN_ATTEMPT", "")
    compiling = error if isinstance(error, CompileError) else None
    fault = "runner" if isinstance(error, errors.NoDeviceError | errors.CannotCompileError) else "ours"
    # What compiles reads the card of the commit; what measures, that of the default branch.
    of_card = isinstance(error, errors.CardError) and verb == "build"
    if of_card or isinstance(error, CompileError | errors.NoKernelError):
        fault = "build"
    text = FailureNote.model_validate(
        {
            "schema": "kernelgate.failure/1",
            "fault": fault,
            "message": (compiling.first if compiling else str(error))[:MAX_MESSAGE] or type(error).__name__,
            "verb": verb[:40] or None,
            "target": compiling.target if compiling else None,
            "log": tuple(line[:MAX_LINE] for line in compiling.excerpt[:MAX_LOG]) if compiling else (),
            "run_attempt": int(attempt) if attempt.isdecimal() and int(attempt) else None,
        }
    ).model_dump_json(by_alias=True)
    files.write(Path(name), text + "\n")
