"""Options that several commands share."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from pydantic import TypeAdapter

from kernelgate.bench import record
from kernelgate.bench.core import files
from kernelgate.bench.core.errors import KernelgateError, OutputError
from kernelgate.bench.record import LARGEST, RunRecord
from kernelgate.bench.system import progress
from kernelgate.ci.policy import policy
from kernelgate.ci.policy.policy import Policy

if TYPE_CHECKING:
    from kernelgate.bench.build.library import Sides
    from kernelgate.bench.kernel.cards import Cards
    from kernelgate.bench.measure.run import Named


class OutputPath(click.Path):
    """A place that a command leaves something at: tried while the command line is read, before anything is done."""

    def __init__(self, is_folder: bool = False) -> None:
        super().__init__(readable=False, path_type=Path)
        self.is_folder = is_folder

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        path = Path(str(super().convert(value, param, ctx)))
        if ctx is None or not ctx.resilient_parsing:
            (files.try_folder if self.is_folder else files.try_file)(path)
        return path


class FiniteNumber(click.FloatRange):
    """Not NaN, which is in every range, nor what becomes infinite when it is added up."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        number = super().convert(value, param, ctx)
        return number if abs(number) <= LARGEST else self.fail(f"{value} is no number up to {LARGEST:g}.", param, ctx)


class ShardNumber(click.ParamType[tuple[int, int]]):
    name = "number/count"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        found = re.fullmatch(r"(\d{1,4})/(\d{1,4})", str(value))
        number, of = (int(found[1]), int(found[2])) if found else (0, 0)
        if not 1 <= number <= of:
            self.fail(f"{value} is no shard: write 1/4 to 4/4 for four shards.", param, ctx)
        return number, of


PATH = click.Path(readable=False, path_type=Path)  # whoever reads it says what is wrong, with 3
SHARD = ShardNumber()
OUTPUT, OUTPUT_FOLDER = OutputPath(), OutputPath(is_folder=True)
MORE_THAN_0, AT_LEAST_0 = FiniteNumber(min=0, min_open=True), FiniteNumber(min=0)
Command = Callable[..., Any]

policy_file = click.option("--policy", "policy_file", type=PATH, help="Default: .ci/kernelgate.toml.")
seed = click.option("--seed", type=click.IntRange(0, 2**64 - 1), help="Default: a new one.")
from_cards = click.option(
    "--cards",
    "from_cards",
    type=click.Path(exists=True, file_okay=False, readable=False, resolve_path=True, path_type=Path),
    help="Take all commits' cards from this folder, in this command only.",
)
PYTHON = click.Path(exists=True, dir_okay=False, path_type=Path)


class Place(click.Argument):
    """A place of the command line, with what stands there: for programs, which do not read the usage."""

    def __init__(self, *words: Any, about: str, **more: Any) -> None:
        super().__init__(*words, **more)
        self.help = about


def argument(*words: str, about: str, **more: Any) -> Callable[[Command], Command]:
    return click.argument(*words, cls=Place, about=about, **more)


def in_python(command: Command) -> Command:
    """Gives a command --python: kernels are built for, and run in, that one, or the policy's."""

    @click.option("--python", type=PYTHON, help="Run kernels in this Python, with its torch. Default: the policy's.")
    @wraps(command)
    def running(*words: Any, python: Path | None, **more: Any) -> Any:
        from kernelgate.bench.system import git, interpreter

        named = ""
        with suppress(KernelgateError):  # where there is no repository
            file = git.root(Path.cwd()) / policy.POLICY_FILE
            named = policy.load(file).measure.environment if file.exists() else ""
        with interpreter.using(python.absolute() if python else Path(named).expanduser() if named else None):
            return command(*words, **more)

    return running


preset = click.option("--preset", default="default", show_default=True, help="The policy's preset, such as strict.")


def with_rules(load: Callable[..., Policy] = policy.load, *, presets: bool = False) -> Callable[[Command], Command]:
    """Gives a command --policy, also --preset, and as `rules` the policy that they name."""

    def given(command: Command) -> Command:
        @policy_file
        @wraps(command)
        def ruled(*words: Any, policy_file: Path | None, preset: str = policy.DEFAULT_PRESET, **options: Any) -> Any:
            return command(*words, rules=load(policy_file, preset), **options)

        return preset(ruled) if presets else ruled

    return given


class JsonOption(click.Option):
    def __init__(self, *words: Any, model: Any, **more: Any) -> None:
        super().__init__(*words, **more)
        self.model = model


@dataclass(frozen=True)
class Answered:
    """What a command answers: the object that --json prints (a text is JSON already), what people read, which may
    also be a call that shows it, the exit code, and the files that are written once that was printed."""

    told: Any
    text: str | Callable[[], object]
    code: int = 0
    files: Mapping[Path, str | bytes] = field(default_factory=dict)


def json_option(model: Any, text: str = "Print one JSON object.") -> Callable[[Command], Command]:
    """Gives a command that prints by itself `--json`, as `as_json`."""
    return click.option("--json", "as_json", is_flag=True, cls=JsonOption, model=model, help=text)


def answers(model: Any, text: str = "Print one JSON object.") -> Callable[[Callable[..., Answered]], Command]:
    """Gives a command its `--json`, and prints what it answers in the form that was asked for."""

    def given(command: Callable[..., Answered]) -> Command:
        @json_option(model, text)
        @wraps(command)
        def answering(*words: Any, as_json: bool, **options: Any) -> int:  # noqa: ARG001 (`show` asks click)
            found = command(*words, **options)
            try:
                show(found)
            finally:  # also where nobody is left to read what is printed
                files.write_each(found.files)
            return found.code

        return answering

    return given


def show(found: Answered) -> None:
    said = found.text
    if click.get_current_context().params["as_json"]:
        said = found.told if isinstance(found.told, str) else shown(found.told)
    if callable(said):
        said()
    elif said:
        click.echo(said)


class GrowingRecord:
    """Writes a record again as it grows. What is measured counts for more than its file: where that cannot be written
    any more, it is said, and tried for the last time once the answer was printed."""

    def __init__(self, path: Path | None) -> None:
        self.path, self.last = path, RunRecord()

    def __call__(self, made: RunRecord) -> None:
        self.last = made
        if self.path:
            try:
                record.write(made, self.path)
            except OutputError as error:
                progress.say(str(error))

    @property
    def files(self) -> dict[Path, str]:
        return {self.path: record.to_json(self.last)} if self.path else {}


@dataclass(frozen=True)
class AskedSides:
    """What options say of base and head; None leaves it to kernelgate."""

    base: Named
    head: Named
    alone: bool = False
    cards: Path | None = None

    def built(self) -> dict[str, Sides]:
        from kernelgate.bench.measure import run as measuring

        return measuring.sides(Path.cwd(), self.base, self.head, self.alone, self.cards)

    def judging(self) -> Cards:
        from kernelgate.bench.kernel import cards

        return cards.of_checkout(Path.cwd(), self.cards)


def one_side(command: Command) -> Command:
    """Gives a command that is about the head the options that name it, as `sides`; it may have a base to look at."""

    @click.option("--ref", help="This commit instead of the working tree.")
    @click.option("--library", type=PATH, help="A compiled library instead: FOLDER[@sha256:DIGEST].")
    @click.option("--base", help="Try what is found at this commit, too: what it does alike is not the head's fault.")
    @click.option("--base-library", type=PATH, help="The same of a compiled library.")
    @from_cards
    @wraps(command)
    def of_head(from_cards: Path | None, **more: Any) -> Any:
        head, base = (more.pop("ref"), more.pop("library")), (more.pop("base"), more.pop("base_library"))
        return command(sides=AskedSides(base, head, cards=from_cards), **more)

    return of_head


def two_sides(command: Command) -> Command:
    """Gives a command the options that name base and head, of which the base may be left out, as `sides`."""
    return both_sides(click.option("--alone", is_flag=True, help="The head without a base.")(command))


def both_sides(command: Command) -> Command:
    """As `two_sides`, always with a base."""

    @click.option("--base", help="The base commit. Default: where this branch left the default branch.")
    @click.option("--base-library", type=PATH, help="This compiled library is the base.")
    @click.option("--head", help="This commit is the head, instead of the working tree.")
    @click.option("--head-library", type=PATH, help="This compiled library is the head.")
    @from_cards
    @wraps(command)
    def of_sides(from_cards: Path | None, alone: bool = False, **more: Any) -> Any:
        base, head = ((more.pop(side), more.pop(f"{side}_library")) for side in ("base", "head"))
        return command(sides=AskedSides(base, head, alone, from_cards), **more)

    return of_sides


def stored_times(rules: Policy, gpu: str | None, repo: Path) -> Path | None:
    """The baseline of a GPU, by whose times cases are dealt out; None where the policy names none that is there."""
    stored = next((repo / one.baseline for one in rules.measure.gpus if one.label == gpu and one.baseline), None)
    return stored if stored and stored.exists() else None


def shown(answer: Any) -> str:
    data = TypeAdapter(type(answer)).dump_python(answer, mode="json", by_alias=True)
    data = json.loads(json.dumps(data), parse_constant=lambda _: None)  # JSON has no number for infinities and NaN
    text = json.dumps(data, indent=2, ensure_ascii=False)
    return text.encode(errors="backslashreplace").decode()  # bytes of a file's name that are no UTF-8, as JSON has them
