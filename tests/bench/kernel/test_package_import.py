"""Two commits' packages of one name in one process: no torch, no Triton."""

from __future__ import annotations

import builtins
import ctypes
import importlib
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from kernelgate.bench.kernel import loading
from kernelgate.bench.kernel.loading import PackageImportError
from kernelgate.bench.kernel.loading import load_package as load
from tests.miniature import write

Files = dict[str, str]


@pytest.fixture(autouse=True)
def _process_as_it_was(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(builtins, "__import__", builtins.__import__)
    monkeypatch.setattr(importlib, "import_module", importlib.import_module)
    before = set(sys.modules)
    yield
    for alias in list(loading._packages):
        loading.forget(alias)
    for name in set(sys.modules) - before:
        if name.startswith(("my_kernels", "third_party")):
            del sys.modules[name]


def sides(tmp_path: Path, files: Files, name: str = "my_kernels") -> tuple[ModuleType, ModuleType]:
    """The same files twice, with the side's name in place of SIDE."""
    loaded = []
    for side in ("base", "head"):
        texts = {path: text.replace("SIDE", repr(side)) for path, text in files.items()}
        loaded.append(load(write(tmp_path / side, texts), name, side))
    return loaded[0], loaded[1]


WAYS = {
    "relative": "from .sub import side",
    "absolute": "from my_kernels import sub\nside = sub.side",
    "dotted": "import my_kernels.sub\nside = my_kernels.sub.side",
    "by a function of importlib": "from importlib import import_module\nside = import_module('my_kernels.sub').side",
    "by importlib, relative": "import importlib\nside = importlib.import_module('.sub', __package__).side",
    "by __import__": "side = __import__('my_kernels.sub').sub.side",
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS.keys())
@pytest.mark.parametrize("late", [False, True], ids=["at the top", "in a function"])
def test_every_way_to_import_stays_within_the_side(tmp_path: Path, way: str, late: bool) -> None:
    body = "\n".join(f"    {line}" for line in way.splitlines()) if late else "    return side"
    code = f"def call():\n{body}\n    return side\n" if late else f"{way}\ndef call():\n{body}\n"
    base, head = sides(tmp_path, {"my_kernels/__init__.py": code, "my_kernels/sub.py": "side = SIDE\n"})
    assert (base.call(), head.call(), base.call()) == ("base", "head", "base")


@pytest.mark.parametrize("absent", ["my_kernels.layers", "some_library"])
def test_a_package_can_tell_that_an_optional_part_is_absent_from_one_that_fails(tmp_path: Path, absent: str) -> None:
    optional = f"""import importlib
try:
    importlib.import_module("my_kernels.layers")
except ModuleNotFoundError as error:
    assert error.name == {absent!r}, error.name
try:
    import my_kernels.layers
except ModuleNotFoundError as error:
    assert error.name == {absent!r}, error.name
else:
    raise AssertionError
"""
    layers = {} if absent.startswith("my_kernels") else {"my_kernels/layers.py": f"import {absent}"}
    for loaded in sides(tmp_path, {"my_kernels/__init__.py": optional, **layers}):
        assert loaded.__name__.startswith("my_kernels")


def test_a_module_is_had_without_what_only_its_package_wants(tmp_path: Path) -> None:
    files = {
        "my_kernels/__init__.py": "from my_kernels.fast import fast\n",
        "my_kernels/fast.py": "import third_party_cuda\n",
        "my_kernels/ops/plain.py": "from my_kernels.ops import side\ndef call():\n    return side.side\n",
        "my_kernels/ops/side.py": "side = SIDE\n",
    }
    base, head = sides(tmp_path, files, "my_kernels.ops.plain")
    assert (base.call(), head.call()) == ("base", "head")
    for wanted in ("my_kernels", "my_kernels.fast"):
        with pytest.raises(PackageImportError, match=r"my_kernels/fast\.py:1: .*No module named 'third_party_cuda'"):
            load(tmp_path / "base", wanted, wanted[-4:])
    own = write(tmp_path / "own", {**files, "my_kernels/__init__.py": "import my_kernels.nonesuch\n"})
    with pytest.raises(PackageImportError, match=r"my_kernels/__init__\.py:1: .*No module named 'my_kernels.nonesuch'"):
        load(own, "my_kernels.ops.plain", "own")


def test_a_package_finds_its_own_name_in_a_functions_module(tmp_path: Path) -> None:
    # As tritonbench does, whose operators are called what follows "tritonbench.operators.".
    text = "def side(): return SIDE\nname = side.__module__.partition('my_kernels.ops.')[2]\n"
    loaded = sides(tmp_path, {"my_kernels/ops/softmax.py": text}, "my_kernels.ops.softmax")
    assert [(one.name, one.side()) for one in loaded] == [("softmax", "base"), ("softmax", "head")]


def test_a_single_module_and_a_folder_without_an_init(tmp_path: Path) -> None:
    base, head = sides(tmp_path / "module", {"one.py": "def call():\n    return SIDE\n"}, "one")
    assert (base.call(), head.call()) == ("base", "head")
    files = {"two/sub.py": "import two.other\ndef call(): return two.other.side\n", "two/other.py": "side = SIDE\n"}
    base, head = sides(tmp_path / "folder", files, "two")
    assert [importlib.import_module(f"{one.__name__}.sub").call() for one in (base, head)] == ["base", "head"]


def test_files_and_sources_are_found(tmp_path: Path) -> None:
    """Triton hashes a kernel's source, which inspect reads from the file."""
    files = {
        "my_kernels/__init__.py": "from pathlib import Path\nfrom importlib import resources\n"
        "def kernel():\n    return SIDE\n"
        "beside = (Path(__file__).parent / 'data.txt').read_text()\n"
        "def late():\n    return resources.files('my_kernels').joinpath('data.txt').read_text()\n",
        "my_kernels/data.txt": "SIDE",
    }
    for side, module in zip(("base", "head"), sides(tmp_path, files), strict=True):
        assert inspect.getsource(module.kernel) == f"def kernel():\n    return {side!r}\n"
        assert inspect.getmodule(module.kernel) is module
        assert {module.beside, module.late()} == {repr(side)}


def test_everyone_else_imports_as_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outside = write(
        tmp_path / "site",
        {
            "my_kernels/__init__.py": "side = 'installed'\n",
            "third_party.py": "def call():\n    import my_kernels\n    return my_kernels.side\n",
        },
    )
    files = {
        "my_kernels/__init__.py": "side = SIDE\nimport third_party\ndef call():\n    import json, my_kernels_more\n"
        "    return my_kernels_more.side\n"
    }
    write(outside, {"my_kernels_more.py": "side = 'more'\n"})
    monkeypatch.syspath_prepend(outside)
    base, head = sides(tmp_path, files)
    assert base.third_party is head.third_party
    assert base.third_party.call() == "installed"
    assert (base.call(), head.call()) == ("more", "more")
    assert importlib.import_module("my_kernels").__dict__["side"] == "installed"


def card(name: str) -> Any:
    """A card's module that imports the package instead of using what it is handed."""
    module = ModuleType(name)
    exec("def call():\n    from my_kernels import side\n    return side\n", module.__dict__)  # noqa: S102
    return module


@pytest.mark.parametrize("own", [True, False], ids=["each side's card", "one card of both"])
def test_a_card_may_import_its_own_sides_package(tmp_path: Path, own: bool) -> None:
    """One of both sides is told to use what it is handed."""
    cards = [card(f"card_of_{side}") for side in ("base", "head")] if own else [card("judging_card")] * 2
    for side, module in zip(("base", "head"), cards, strict=True):
        folder = write(tmp_path / side, {"my_kernels/__init__.py": f"side = {side!r}\n"})
        load(folder, "my_kernels", side, module.__name__)
    if own:
        assert [module.call() for module in cards] == ["base", "head"]
    else:
        with pytest.raises(ImportError, match=r"both sides here: use the one that call\(\) is handed"):
            cards[0].call()


@pytest.mark.parametrize(
    ("files", "place", "text"),
    [
        ({"my_kernels/__init__.py": "\nfrom .sub import x\n"}, "my_kernels/__init__.py:2", "'my_kernels.sub'"),
        (
            {"my_kernels/__init__.py": "from my_kernels import sub\n", "my_kernels/sub.py": "x = 1\ny = 1 +\n"},
            "my_kernels/sub.py:2",
            "SyntaxError: invalid syntax",
        ),
        ({"my_kernels/__init__.py": "raise SystemExit('no')\n"}, "my_kernels/__init__.py:1", "SystemExit: no"),
        ({"other.py": ""}, "", "has neither my_kernels/ nor my_kernels.py"),
    ],
)
def test_a_package_that_cannot_be_imported(tmp_path: Path, files: Files, place: str, text: str) -> None:
    with pytest.raises(PackageImportError, match="the package my_kernels cannot be imported") as caught:
        load(write(tmp_path, files), "my_kernels", "head")
    assert caught.value.place == place
    assert text in str(caught.value)
    assert not [name for name in sys.modules if name.startswith("my_kernels")]
    (tmp_path / "again").mkdir()
    assert load(write(tmp_path / "again", {"my_kernels.py": "x = 1\n"}), "my_kernels", "head").x == 1


STABLE = "torch_call_dispatcher(…) API call failed at /include/torch/csrc/stable/ops.h, line 316"


def failing_call() -> None:
    """A call of an operator that does not exist, as a library of the stable ABI makes it."""
    library = ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / "libtorch_cpu.so"))
    call = library.torch_call_dispatcher
    call.argtypes = (ctypes.c_char_p, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_uint64)
    assert call(b"aten::never_heard_of", b"", None, 0) != 0


def test_what_was_thrown_beyond_the_stable_abi_is_said() -> None:
    failing_call()
    error = ValueError("N must be a multiple of 8")
    assert loading.error_message(error) is error, "it is of another kind"
    assert "aten::never_heard_of" in str(loading.error_message(RuntimeError(STABLE)))


def test_a_torch_that_keeps_no_text_leaves_its_own_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "_TEXT", "no_such_function")
    assert str(loading.error_message(RuntimeError(STABLE))) == STABLE


def test_a_text_that_is_no_utf8_is_said_all_the_same() -> None:
    with pytest.raises(UnicodeDecodeError) as raised:
        b"N is \xff\nand more".decode()
    assert str(loading.error_message(raised.value)).startswith("N is �")
