"""What `kernelgate init` leaves in a repository, and what of that is missing or out of date. Nothing is overwritten."""

from __future__ import annotations

import ast
import gc
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from keyword import iskeyword
from pathlib import Path

from kernelgate.bench.core.files import CARDS
from kernelgate.bench.kernel.card import OPEN
from kernelgate.ci.pipeline import native_kernels, python_kernels
from kernelgate.ci.pipeline.found_kernels import ONE_ROW, Argument, Finding, FoundKernel, Skipped, parsed, with_outputs
from kernelgate.ci.pipeline.native_kernels import split

CALLER = Path(__file__).parent / "caller"
"""In a checkout a link to docs/caller: the workflows and the policy of a repository that starts."""
WORKFLOWS, POLICY, IGNORE = ".github/workflows", ".ci/kernelgate.toml", ".gitignore"
TEMPLATE = ".github/pull_request_template.md"
"""In a checkout a link to its own lies beside this file."""
RESULTS = "out/"
USES = re.compile(r"kernelgate/kernelgate/(\.github/workflows/[\w-]+\.yml)@main( # zizmor:.*)?")
GENERIC = frozenset({"backward", "bwd", "custom_kernel", "forward", "fwd", "kernel", "launch", "main", "plan", "run"})
"""Names that say nothing without their file's."""
PATHS = re.compile(r"paths: \[.*\]")
LARGEST = 2_000_000
"""Bytes of a source; a larger one was made by a program."""


@dataclass(frozen=True)
class Repository:
    root: Path
    names: tuple[str, ...]
    branch: str
    tool: str
    """Whose workflows are called, such as "kernelgate/kernelgate@v0"."""

    def read(self, name: str) -> str:
        path = self.root / name
        try:
            return path.read_text(encoding="utf-8", errors="replace") if path.stat().st_size <= LARGEST else ""
        except OSError:  # a link to nowhere
            return ""


def found(repo: Repository, torch: str) -> tuple[Finding, ...]:
    """Every kernel, each under a name of its own."""
    gc.disable()  # which takes longer than all else where many files are parsed, and frees nothing
    try:
        return tuple(_renamed(_found(repo, torch)))
    finally:
        gc.enable()


def _found(repo: Repository, torch: str) -> list[Finding]:
    every: list[Finding] = [*native_kernels.find(repo.names, repo.read, torch)]
    solved = tuple(f"{folder}/" for folder in python_kernels.folders(repo.names))  # whose solutions are not the task
    modules = [one for one in python_kernels.modules(repo.names, repo.read) if not one.file.startswith(solved)]
    classes = [(one, node) for one in modules for node in one.tree.body if isinstance(node, ast.ClassDef)]
    operators = dict.fromkeys(one for one, node in classes if "BenchmarkOperator" in python_kernels.bases(node))
    every += python_kernels.find([one for one in modules if one not in operators], repo.names)
    every += (kernel for one in operators for kernel in python_kernels.operator(one, repo.names))
    every += python_kernels.tasks(repo.names, repo.read)
    return sorted(every, key=lambda one: (isinstance(one, Skipped), one.place.count("/")))  # deep ones are variants


def _renamed(every: Iterable[Finding]) -> Iterator[Finding]:
    taken: dict[str, int] = {}
    for one in every:
        if isinstance(one, Skipped):
            yield one
            continue
        stem = Path(one.file).stem.replace("-", "_")
        name = f"{stem}_{one.name}" if one.name in GENERIC and stem.isidentifier() else one.name
        taken[name] = taken.get(name, 0) + 1
        yield replace(one, name=name if taken[name] == 1 else f"{name}_{taken[name]}")


def files(repo: Repository, chosen: Sequence[FoundKernel], found: Sequence[FoundKernel]) -> dict[str, str]:
    """All that a repository needs, by path: cards of the chosen kernels, and the rest where there is one to measure."""
    if not found:
        return {}
    made = {card_of(one): card_text(one) for one in chosen}
    tops = sorted({_pattern(name, repo) for one in chosen or found for name in one.build.sources})
    for path in sorted(CALLER.glob("*.yml")):
        made[f"{WORKFLOWS}/{path.name}"] = _workflow(path.read_text(encoding="utf-8"), repo, tops)
    made[POLICY] = (CALLER / "kernelgate.toml").read_text(encoding="utf-8")
    made[TEMPLATE] = (Path(__file__).parent / Path(TEMPLATE).name).read_text(encoding="utf-8")
    return made


def card_of(kernel: FoundKernel) -> str:
    return f"{CARDS}/{kernel.name}.py"


def _pattern(name: str, repo: Repository) -> str:
    """What watches a source: the folder that it lies in, at most two deep."""
    folders = name.split("/") if any(one.startswith(f"{name}/") for one in repo.names) else name.split("/")[:-1]
    return f"{'/'.join(folders[:2])}/**" if folders else name


def _workflow(text: str, repo: Repository, tops: Sequence[str]) -> str:
    name, _, ref = repo.tool.partition("@")
    text = USES.sub(lambda one: f"{name}/{one[1]}@{ref}", text)
    text = text.replace("branches: [main]", f"branches: [{repo.branch}]")
    setup = [one for one in ("setup.py", "CMakeLists.txt", "pyproject.toml") if one in repo.names]
    return PATHS.sub(lambda _: f"paths: [{', '.join([*tops, *setup, '.ci/**'])}]", text)


def missing(repo: Repository, wanted: Mapping[str, str]) -> dict[str, str]:
    """Of these files those that are not there; .gitignore with a line more."""
    if not wanted:
        return {}
    made = {name: text for name, text in wanted.items() if not (repo.root / name).exists()}
    ignored = repo.read(IGNORE)
    if RESULTS not in (line.strip().lstrip("/") for line in ignored.splitlines()):
        made[IGNORE] = f"{ignored}{'' if ignored.endswith(chr(10)) or not ignored else chr(10)}{RESULTS}\n"
    return made


def open_points(texts: Mapping[str, str]) -> Iterator[str]:
    for name, text in texts.items():
        for number, line in enumerate(text.splitlines(), 1):
            if line.strip().startswith(f"# {OPEN}"):
                yield f"{name}:{number}: {line.partition(OPEN)[2].strip()}"


def out_of_date(repo: Repository, kernels: Sequence[FoundKernel], wanted: Mapping[str, str]) -> Iterator[str]:
    """What a later `kernelgate init` would write otherwise, and what the cards no longer fit."""
    paths = sorted((repo.root / CARDS).glob("[!_]*.py"))
    cards = {name: repo.read(name) for name in (f"{CARDS}/{path.name}" for path in paths)}
    called = " ".join(cards.values())
    for one in kernels:
        if not re.search(rf"\.{re.escape(one.called.removeprefix('ops.'))}\(", called):
            yield f"{one.place}: {one.name} ({one.how}) has no card: kernelgate init {one.name}"
    for name, text in cards.items():
        yield from _stale(name, text, repo)
    for name, text in wanted.items():
        if not name.startswith(WORKFLOWS):
            continue
        if not (repo.root / name).exists():
            yield f"{name} is missing: kernelgate init writes it"
        elif (old := repo.read(name)) != text:
            both = zip(old.splitlines(), text.splitlines(), strict=False)
            line = 1 + len(list(takewhile(lambda one: one[0] == one[1], both)))
            yield f"{name}:{line}: differs from what this version writes; delete it, and kernelgate init writes it anew"


def _stale(name: str, text: str, repo: Repository) -> Iterator[str]:
    for node in ast.walk(parsed(text)):
        if not isinstance(node, ast.Call) or ast.unparse(node.func) != "Extension":
            continue
        for pattern in (one.value for one in node.args if isinstance(one, ast.Constant)):
            if isinstance(pattern, str) and not Path(pattern).is_absolute() and not any(repo.root.glob(pattern)):
                yield f"{name}:{node.lineno}: there is no {pattern} any more"


# The text of a card, where a guess stands below a line "# OPEN: …" ----------------------------------------------------


WIDTH = 110
WHOLE = re.compile(
    r"(?:.*_)?(?:ind(?:ex|ices)|idxs?|ids?|targets?|labels?|positions?|lens?|lengths?|seqlens?|indptr|table|offsets?)(?:_[a-z]{1,2})?\d*",
    re.IGNORECASE,
)
"""How arguments of whole numbers are called."""
TAKEN = frozenset({"case", "draw", "ops", "self"})


def card_text(kernel: FoundKernel) -> str:
    if not kernel.results and not any(one.written for one in kernel.arguments):
        kernel = replace(kernel, arguments=with_outputs(kernel.arguments, returns=False))
    tensors = [_name(one) for one in kernel.arguments if one.kind in ("tensor", "tensors") and not one.written]
    written = [_name(one) for one in kernel.arguments if one.kind == "tensor" and one.written]
    named = re.findall(r"(\w+)=\d", kernel.cases[0]) if kernel.cases else ["M", "N"]
    rows, columns = f"case.{named[0]}", f"case.{named[min(1, len(named) - 1)]}"
    drawn = (f"{_name(one)}={_drawn(one, rows, columns)}" for one in kernel.arguments if _name(one) in tensors)
    changed = [] if written or kernel.results else [_name(one) for one in kernel.arguments if one.kind == "tensor"][:1]
    outputs = written or list(kernel.results) or ["out"]
    fresh = [name if name not in tensors else f"{name}_result" for name in outputs]
    shaped = (f"{name}=Output({rows}, {columns})" for name in fresh)
    shapes = f"from {kernel.shapes}" if kernel.shapes else "as the kernel takes them"
    result = f"the right result in torch{f', from {kernel.oracle}' if kernel.oracle else ''}"
    given, called = ", ".join(map(_value, kernel.arguments)), "" if written or changed else "return "
    unsaid = [f"the value of {one.name}" for one in kernel.arguments if one.kind == "number" and one.default is None]
    unsaid += [f"it returns {', '.join(kernel.results)}, too"] if written and kernel.results else []
    unsaid += [] if written or kernel.results or changed else ["it returns nothing: return what it overwrites"]
    names = {kernel.build.text.partition("(")[0], "Kernel", "Kernel" if changed else "Output"}
    made = [
        "",
        f"    def outputs({', '.join(('self', 'case', *tensors))}):",
        f"        # {OPEN} shapes and dtypes of {', '.join(fresh)}",
        *_wrapped("        return ", f"dict({', '.join(shaped)})"),
    ]
    if changed:
        made = [f"    # {OPEN} it returns nothing: which inputs does it overwrite?", f'    in_place = ["{changed[0]}"]']
    lines = [
        f'"""{kernel.name}: {kernel.how}, {kernel.place}."""',
        "",
        f"from kernelgate import {', '.join(sorted(names))}",
        "",
        "",
        f"class {kernel.name.title().replace('_', '') or 'Found'}(Kernel):",
        *(f"    # {OPEN} {text}" for text in kernel.build.open),
        *_wrapped("    build = ", kernel.build.text),
        *_cases(kernel),
        *(made if changed else ()),
        "",
        "    def inputs(self, case, draw):",
        f"        # {OPEN} shapes and dtypes of {', '.join(tensors) or 'its inputs'}, {shapes}",
        *_wrapped("        return ", f"dict({', '.join(drawn)})"),
        *(() if changed else made),
        "",
        f"    def call({', '.join(('self', 'ops', 'case', *written, *tensors))}):",
        *(f"        # {OPEN} {text}" for text in (*kernel.open, *unsaid)),
        f"        {called}{kernel.called}{kernel.given.format(given)}",
        "",
        f"    def oracle({', '.join(('self', 'case', *tensors))}):",
        f"        # {OPEN} {result}; its inputs are float64",
        f'        raise NotImplementedError("the oracle of {kernel.name} is not written yet")',
    ]
    return "\n".join(lines) + "\n"


def _wrapped(begin: str, call: str) -> Iterator[str]:
    """A call, with an argument on each line where it is long."""
    indent = " " * (len(begin) - len(begin.lstrip()))
    name, _, inner = call.removesuffix(")").partition("(")
    if len(begin) + len(call) <= WIDTH:
        yield f"{begin}{call}"
        return
    yield f"{begin}{name}("
    yield from (f"{indent}    {part}," for part in split(inner))
    yield f"{indent})"


def _cases(kernel: FoundKernel) -> Iterator[str]:
    dtype = "bf16" if "bf16" in kernel.dtypes else kernel.dtypes[0]
    yield f"    # {OPEN} which shapes and dtypes are timed and fuzzed; the first is the target"
    for name in kernel.lists:
        yield f"    {name} = ["
        yield from (f'        dict({axes}, dtype="{dtype}"),' for axes in kernel.cases or ("M=4096, N=4096",))
        yield "    ]"
    if not kernel.cases:
        dtypes = "".join(f'"{one}", ' for one in kernel.dtypes)
        yield f"    fuzz = dict(M=range(1, 300), N=range(1, 5000), dtype=({dtypes.rstrip(' ')}))"


def _value(one: Argument) -> str:
    if one.kind in ("tensor", "tensors"):
        return _name(one)
    return one.default or ("None" if one.kind == "optional" else "1e-6" if "eps" in one.name else "1")


def _drawn(one: Argument, rows: str, columns: str) -> str:
    if one.kind == "tensors":
        return f"[draw({rows}, {columns})]"
    if WHOLE.fullmatch(one.name):
        return f"draw.integers(0, {columns}, {rows})"
    return f"draw({columns})" if ONE_ROW.fullmatch(one.name) else f"draw({rows}, {columns})"


def _name(one: Argument) -> str:
    """As a parameter of the card's methods."""
    return f"{one.name}_" if iskeyword(one.name) or one.name in TAKEN else one.name
