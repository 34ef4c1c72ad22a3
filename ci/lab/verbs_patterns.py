"""`kernelgate patterns`: what saved time before, and applies now."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.option("--session", help="Look at this session's log. Default: the one that is open, where there is one.")
@click.option("--record", "run", type=click.Path(path_type=Path), help="Look at this run record, too.")
@click.option("--doctor", type=click.Path(path_type=Path), help="Look at what `kernelgate doctor -o FILE` wrote, too.")
@click.option("--all", "every", is_flag=True, help="List all patterns, also those that do not apply now.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object: `patterns`, and what was `looked_at`.")
@click.option("--policy", "policy_file", type=click.Path(path_type=Path), help="Default: .ci/kernelgate.toml.")
def patterns(
    session: str | None, run: Path | None, doctor: Path | None, every: bool, as_json: bool, policy_file: Path | None
) -> None:
    """List the patterns that apply now, each with the figure that says so and the command to run. Needs no GPU.

    They are the files of the checkout's docs/patterns, else kernelgate's own.

    Exit codes: 0 listed, 3 a file cannot be read, 64 usage.
    """
    from kernelgate.bench import record
    from kernelgate.ci.lab.patterns import apply, gathered, pattern, words
    from kernelgate.ci.lab.patterns.seen import JudgedTimes, Seen
    from kernelgate.ci.lab.sessions import folder
    from kernelgate.ci.policy import policy

    here, rules = Path.cwd(), policy.load(policy_file)
    started = folder.waiting_in(here) if session is None else (folder.named(here, session),)
    chosen = started[0] if len(started) == 1 else None
    made = record.read(run) if run else None
    seen = Seen(
        gathered.doctor(doctor) if doctor else (),
        made,
        gathered.times(made, rules) if made else JudgedTimes(),
        chosen.events if chosen else (),
    )
    looked_at = [
        *([f"session {chosen.name}"] if chosen else []),
        *([str(run)] if run else []),
        *([str(doctor)] if doctor else []),
    ]
    known = pattern.read_all(pattern.folder(here))
    found = (apply.judged if every else apply.applying)(known, seen, gathered.thresholds(rules))
    click.echo(words.to_json(found, looked_at) if as_json else words.to_text(found, looked_at))
