"""The verb that searches for a commit."""

from __future__ import annotations

from pathlib import Path

import click

from kernelgate.bench.errors import UsageError


@click.command()
@click.argument("good")
@click.argument("bad", default="HEAD")
@click.option("--case", help="Written as `kernelgate cards` lists them. Default: the card's first one on this device.")
@click.option("--build", "only_build", is_flag=True, help="Find the last commit that compiles instead. Needs no GPU.")
@click.option("--rounds", type=click.IntRange(min=20), default=100, show_default=True, help="Rounds in each process.")
@click.option("--seed", type=click.IntRange(min=0), help="The random seed. Default: a new one.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@click.option("--policy", "policy_file", type=click.Path(path_type=Path), help="Default: .ci/kernelgate.toml.")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    default=Path("out/bisect.json"),
    show_default=True,
    help="The record of all that was measured.",
)
def bisect(
    good: str,
    bad: str,
    case: str | None,
    only_build: bool,
    rounds: int,
    seed: int | None,
    as_json: bool,
    policy_file: Path | None,
    output: Path,
) -> int:
    """Find the commit after GOOD, up to BAD, that changed a case's time: by measuring, not by reading.

    Builds commits and times them beside each other in the same processes, those first that tell most, until one is
    certain enough. Commits that do not compile, crash or give wrong results are stepped over.

    Exit codes: 0 found, 2 the ends take the same time, 3 it could not be told or could not run, 64 usage.
    """
    from kernelgate.bench import bisect as commits
    from kernelgate.bench import files, record
    from kernelgate.bench.system.progress import say
    from kernelgate.ci.bisect import words
    from kernelgate.ci.bisect.rounds import Rounds
    from kernelgate.ci.bisect.search import Search
    from kernelgate.ci.judge import policy

    if only_build:
        if case:
            raise UsageError("--build asks whether commits compile, of all cards: leave out --case")
        built = commits.last_that_compiles(Path.cwd(), (good, bad))
        as_text = words.build_to_text(built.last, built.broken, built.subject, built.why)
        click.echo(words.build_to_json(built.last, built.broken, built.why) if as_json else as_text)
        return 0
    rules = policy.load(policy_file)
    files.try_file(output)
    how = commits.measuring(rounds, seed, rules.timing.pause_when_capped)
    locked = rules.timing.lock_clocks

    def keep(made: record.RunRecord) -> None:
        record.write(made, output)

    with commits.opened(Path.cwd(), (good, bad), case, how, locked, keep) as bench:
        on_cpu = bench.setup.device == "cpu"
        together, apart = (
            rules.bisect.cpu_pct if on_cpu else one for one in (rules.bisect.together_pct, rules.bisect.apart_pct)
        )
        search = Search(len(bench.shas) - 1, spread_pct=together)
        rounds_ = Rounds(bench, rules.bisect, say, search, apart, set())
        now = rounds_.run()
    named = f"{bench.chosen.card.name}/{bench.chosen.case.id}"
    subjects = commits.subjects(Path.cwd(), [bench.shas[place] for place in now.culprits])
    found = words.SearchResult(bench.shas, subjects, now, rounds_.search, named)
    click.echo(words.to_json(found) if as_json else words.to_text(found))
    return found.exit_code
