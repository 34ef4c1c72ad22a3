"""Kernels in Python as real libraries, and cards for them.

A library's kernel.so is plain C: its constructor hands a Python file to the interpreter that loads it. So a test's
kernel travels the same way as a compiled one: through the folder, the hash, dlopen and torch.ops. It is compiled once;
each library is a copy with other words in it.
"""

from __future__ import annotations

import builtins
import hashlib
import importlib.util
import json
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch

from kernelgate.bench.build import library
from kernelgate.bench.build.library import Library, Manifest
from kernelgate.bench.kernel import cards
from kernelgate.bench.kernel.cards import CardFacts
from tests.forked_reader import read_cards_in_forks

ROOT = Path(__file__).parent.parent
WORDS = b"the words that the interpreter runs".ljust(2048)
SOURCE = r"""
static const char words[] = WORDS;
extern int PyGILState_Ensure(void);
extern void PyGILState_Release(int);
extern int PyRun_SimpleString(const char*);
__attribute__((constructor)) static void loaded(void) {
  int state = PyGILState_Ensure();
  PyRun_SimpleString(words);
  PyGILState_Release(state);
}
"""
TWICE = """
@operator("twice(Tensor x, Tensor(a!) out) -> ()")
def twice(x, out):
    out.copy_(2 * x)
"""
TWICE_METHODS = """def inputs(self, case, draw):
    return dict(x=draw(case.M))
def call(self, ops, case, out, x):
    ops.twice(x, out)
def oracle(self, case, x):
    return 2 * x
"""
"""Of a card for it."""
KEPT = "kernelgate_registered"
"""The attribute of `builtins` that keeps what this process has registered."""
HEAD = """import torch
from torch.nn.functional import *
from kernelgate import Extension, Kernel, Output, Package, between
"""


def build(
    folder: Path, namespace: str, code: str, card: str = "attention", card_file: Path | None = None, **fields: Any
) -> Library:
    """A library in `folder` that runs `code` where it is loaded. `card_file`: the commit's own card.

    `code` finds `operator(schema)` and `namespace`; `fields` are further ones of the manifest.
    """
    folder.mkdir(parents=True)
    (folder / "operators.py").write_text(code, encoding="utf-8")
    start = (
        f"import sys; sys.path.append({str(ROOT)!r})\n"
        "from tests import registered\n"
        f"registered.run({str(folder / 'operators.py')!r}, {namespace!r})\n"
    )
    assert len(start) < len(WORDS)
    (folder / "kernel.so").write_bytes(_compiled().replace(WORDS, start.encode().ljust(len(WORDS))))
    if card_file is not None:
        (folder / "card").mkdir()
        shutil.copyfile(card_file, folder / "card" / f"{card}.py")
        fields = {"card_sha256": hashlib.sha256(card_file.read_bytes()).hexdigest()} | fields
    digest = hashlib.sha256((folder / "kernel.so").read_bytes()).hexdigest()
    return _described(folder, namespace, code, card=card, sha256=digest, **fields)


def _described(folder: Path, namespace: str, code: str, **fields: Any) -> Library:
    """The library in a folder, once its manifest is there, too."""
    key = f"{namespace}-{hashlib.sha256(code.encode()).hexdigest()}"
    known = {"namespace": namespace, "sha": None, "targets": (), "key": key, "seconds": 0.1, "kernels": ()}
    manifest = Manifest(**{**known, **fields})
    (folder / "library.json").write_text(manifest.model_dump_json())
    return library.read(folder)


@cache
def _compiled() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "kernel.so"
        command = ["gcc", "-shared", "-fPIC", f"-DWORDS={json.dumps(WORDS.decode())}", "-x", "c", "-", "-o", made]
        subprocess.run(command, input=SOURCE, text=True, check=True)
        return made.read_bytes()


def package(folder: Path, name: str, code: str, card: str, operators: tuple[str, ...] = ()) -> Library:
    """A library in `folder` that is a package of one module. `operators`: what importing it registers with torch."""
    (folder / "package").mkdir(parents=True)
    (folder / "cache").mkdir()
    (folder / "package" / f"{name}.py").write_text(code, encoding="utf-8")
    digest = library.content_digest(folder, "package")
    return _described(folder, name, code, card=card, kind="package", operators=operators, sha256=digest)


def run(path: str, namespace: str) -> None:
    """Runs in the process that loads the library."""
    kept: list[Any] = getattr(builtins, KEPT, [])
    setattr(builtins, KEPT, kept)
    operators = torch.library.Library(namespace, "DEF")
    kept.append(operators)

    def operator(schema: str) -> Callable[[Any], Any]:
        def register(kernel: Any) -> Any:
            operators.define(schema)
            for device in ("CPU", "CUDA"):
                operators.impl(schema.split("(")[0], kernel, device)
            return kernel

        return register

    spec = importlib.util.spec_from_file_location(f"operators_of_{namespace}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    vars(module).update(torch=torch, namespace=namespace, operator=operator)
    spec.loader.exec_module(module)


def write_card(folder: Path, name: str, body: str) -> Path:
    """The file of a card whose class has this body; `folder` is that of the cards."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.py"
    lines = "".join(f"    {line}\n" if line else "\n" for line in body.strip("\n").split("\n"))
    path.write_text(
        f"{HEAD}\n\nclass {name.title()}(Kernel):\n    build = Extension('csrc')\n{lines}", encoding="utf-8"
    )
    return path


def facts(path: Path) -> CardFacts:
    """What a card's file says."""
    return _facts(path, path.read_bytes())


@cache
def _facts(path: Path, _: bytes) -> CardFacts:
    with pytest.MonkeyPatch.context() as patch:
        read_cards_in_forks(patch)
        return cards.read(path.parent).without_mistakes()[path.stem]
