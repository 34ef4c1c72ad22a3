"""A project's own build: a command that is run in a copy of the sources, and leaves what Python imports in a folder.

The last resort, for what no card can describe. Its libraries register what they like under names of their own, so each
side is imported in processes of its own.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import time
from collections import deque
from collections.abc import Collection, Mapping
from pathlib import Path

from kernelgate.bench.build import archs, cache, toolchain
from kernelgate.bench.build.archs import ARCH_LIST
from kernelgate.bench.build.build import COMPILER_VARIABLES
from kernelgate.bench.build.compiler_output import MAX_LINE, error_in
from kernelgate.bench.build.library import CACHE, PACKAGE, Built, Library
from kernelgate.bench.build.sources import CheckOut, Command
from kernelgate.bench.build.toolchain import Toolchain
from kernelgate.bench.core.errors import BuildError, CannotCompileError, CompileError
from kernelgate.bench.system import git, interpreter, isolation, supervise
from kernelgate.bench.system.progress import say, track
from kernelgate.bench.system.supervise import TimeLimits
from kernelgate.bench.system.worker import open_variables

OUT = "KERNELGATE_OUT"
"""The variable that names the folder in which the command leaves what is imported."""
TREE, TOOLS = "tree", "tools"
PIP = """\
#!/bin/sh
# pip of the Python that measures, which installs into the folder of this side, against that Python's own torch.
command="$1"
[ $# -gt 0 ] && shift
[ "$command" = install ] && set -- --no-build-isolation --target "${out}" "$@"
exec {python} -m pip "$command" "$@"
"""
SHOWN = 40
"""Of a command that failed, its last lines."""
CLOSING = re.compile(r"(?:note|hint): |[×╰│]|\[end of output\]|error: [a-z]+(?:-[a-z]+)+$")
"""What pip prints after the error: whose it is, and that it stands above."""
CMAKE = re.compile(r"^ *CMake Error at (\S+:\d+)[^\n]*\n((?: +[^\n]+\n)+)", re.MULTILINE)
"""The place and the words of an error of CMake's, without empty lines: what comes last says that there was one."""


def command_sources(tree: Path, spec: Command, check_out: CheckOut) -> dict[str, bytes]:
    """The files that the command is run on, by their paths. Raises BuildError where there are none."""
    check_out(spec.sources or ("**",))
    named = {found for pattern in spec.sources for found in tree.glob(pattern)} if spec.sources else {tree}
    every = [tree / path for path in git.files(tree)]
    listed = [path for path in every if path.is_file() and not named.isdisjoint((path, *path.parents))]
    outside = next((path for path in listed if not path.resolve().is_relative_to(tree.resolve())), None)
    if outside is not None:
        raise BuildError(f"{outside.relative_to(tree)} is a link that leads out of the repository")
    if not listed:
        raise BuildError(f"{', '.join(spec.sources) or 'the repository'} holds nothing for the command to build from")
    return {path.relative_to(tree).as_posix(): path.read_bytes() for path in listed}


def run_command(
    tree: Path, files: Mapping[str, bytes], card: str, spec: Command, sha: str | None, limits: TimeLimits, again: str
) -> Library:
    """What the command makes of these files, unless the cache holds it. `again`: what builds it anew. Raises
    CompileError where it fails or leaves no package, and CannotCompileError where that says nothing of the sources."""
    tools = toolchain.find()
    asked = ";".join(".".join(map(str, target[:2])) for target in archs.asked() or archs.at_hand())
    versions = [tools.torch.version, tools.gxx_version, tools.cuda and tools.cuda.version]
    decisive = {
        "files": {name: hashlib.sha256(data).hexdigest() for name, data in sorted(files.items())},
        "command": [spec.line, spec.package],
        "python": [interpreter.installed().words, *versions],
        "targets": asked,
        "environment": sorted((name, os.environ[name]) for name in COMPILER_VARIABLES if name in os.environ),
    }

    def make(work: Path) -> Built:
        for name in files:
            (work / TREE / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(tree / name, work / TREE / name)  # with its mode: a script may be run
        for part in (PACKAGE, CACHE):
            (work / part).mkdir()
        _run(work, files, card, spec, _environment(work, tools, asked), limits, again)
        return Built(
            card=card,
            kind="package",
            binding="installed",
            namespace=spec.package,
            targets=(),
            kernels=(),
            facts_missing="the project's own build does not say what it compiled",
        )

    return cache.cached(cache.digest(decisive)[:32], make).of(card, sha)


def _environment(work: Path, tools: Toolchain, targets: str) -> dict[str, str]:
    out = str((work / PACKAGE).absolute())
    (work / TOOLS).mkdir()
    pip = work / TOOLS / "pip"
    pip.write_text(PIP.format(python=shlex.quote(str(interpreter.current())), out=OUT), encoding="utf-8")
    pip.chmod(0o755)
    folders = (str((work / TOOLS).absolute()), str(interpreter.current().parent), os.environ.get("PATH", ""))
    made = {"PATH": os.pathsep.join(folders), OUT: out, "PIP_NO_INPUT": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    # Where torch's own builds look for nvcc.
    given = {ARCH_LIST: targets, **({"CUDA_HOME": str(tools.cuda.nvcc.parent.parent)} if tools.cuda else {})}
    return {**given, **open_variables(), **made, "LC_ALL": "C.UTF-8"}


def _run(
    work: Path,
    files: Collection[str],
    card: str,
    spec: Command,
    env: Mapping[str, str],
    limits: TimeLimits,
    again: str,
) -> None:
    log, begun, last = cache.log_of(work), time.monotonic(), deque[str](maxlen=SHOWN)
    log.parent.mkdir(parents=True, exist_ok=True)
    errors: list[str] = []
    with log.open("w", encoding="utf-8") as file, track(f"{card}: {spec.line}", 1, limit_s=limits.total_s):

        def on_line(line: str) -> None:
            print(line, file=file)
            found = error_in(line.strip()[:MAX_LINE], "", "", files)
            errors.extend([found.text] if found and found.in_sources else [])
            last.extend([line[:MAX_LINE]] if line.strip() else [])

        def on_silence(seconds: float) -> None:
            say(f"still running {spec.line}: silent for {seconds:.0f} s")

        try:
            apart = isolation.of_sources().writing(work)
            shell = apart.around(["/bin/sh", "-c", spec.line])
            code = supervise.run(shell, cwd=work / TREE, env=env, limits=limits, on_line=on_line, on_silence=on_silence)
        except TimeoutError as overdue:
            raise CannotCompileError(
                f"{card}: `{spec.line}` took longer than the limit of {limits.total_s:g} s and was ended; {overdue} "
                f"(output so far: {log}); `{again} --time-limit {6 * limits.total_s:g}` allows more, and other "
                "commands then use what it made"
            ) from None
    code = apart.exit_code(code)
    say(f"`{spec.line}` took {time.monotonic() - begun:.1f} s")
    if code != 0:
        if not errors and (found := CMAKE.search("".join(f"{line}\n" for line in last))):
            errors.append(f"{found[1]}: {' '.join(found[2].split())}"[:MAX_LINE])
        meant = (line for line in reversed(last) if not CLOSING.match(line.strip()))
        said = next(iter((*errors, *meant, *reversed(last))), "it printed nothing").strip()
        # The shell's exit codes for a program that is not there, or cannot be run.
        if code in (126, 127) or said.endswith("No module named pip"):
            text = f"`{spec.line}` cannot be run here: {said}; install it beside {interpreter.current()}"
            raise CannotCompileError(text)
        if broken := toolchain.breakdown(code, () if errors else last, work):
            raise CannotCompileError(f"`{spec.line}` could not be run: {broken} (all of it: {log})")
        raise CompileError(card, None, f"`{spec.line}` ended with {code}: {said}", log, tuple(last))
    if (wrong := _lacking(work / PACKAGE, spec)) is not None:
        text = f"`{spec.line}` left {wrong}"
        raise CompileError(card, None, text, log, (text,))


def _lacking(out: Path, spec: Command) -> str | None:
    """What was left where the package cannot be imported from the folder; None where it can."""
    root = spec.package.partition(".")[0]
    left = sorted(path.name for path in out.iterdir())
    if (out / root).is_dir() or any(name.startswith(f"{root}.") and name.endswith((".py", ".so")) for name in left):
        return None
    if any(name.startswith("__editable__") or name.endswith((".pth", ".egg-link")) for name in left):
        return "a link to its sources, which are gone afterwards: install without -e"
    return f"no {root} in ${OUT}, where there is {', '.join(left) or 'nothing'}"
