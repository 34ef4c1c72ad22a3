"""What of a package counts for a card: by its imports, with faults that only what runs on the way could make."""

from __future__ import annotations

import pytest

from kernelgate.bench.build.imports import followed
from kernelgate.bench.build.sources import Package

FILES = {
    "ops/__init__.py": "from .norm import norm\nfrom ops import other\nfrom .rope import rope as turned\n",
    "ops/norm/__init__.py": "from .impl import norm\n",
    "ops/norm/impl.py": "from ops.shared import helper\nimport torch\n\ndef norm(x):\n    return helper(x)\n",
    "ops/norm/unused.py": "x = 1\n",
    "ops/shared.py": "def helper(x):\n    from ops.late import factor\n    return factor * x\n",
    "ops/late.py": "factor = 2\n",
    "ops/other.py": "import ops.deep\n\ndef other(x):\n    return x\n",
    "ops/deep.py": "class Deep:\n    def run(self):\n        return 1\n",
    "ops/rope.py": "def rope(x):\n    return x\n",
    "ops/tuned.json": "{}",
}
NORM = "package.norm(x)"


def decisive(name: str = "ops", call: str = NORM, **changed: str) -> dict[str, str]:
    """What counts, with files changed: `norm__impl` is ops/norm/impl.py."""
    card = f"class Card:\n    def call(self, package, case, x):\n        return {call}\n"
    new = {f"ops/{path.replace('__', '/')}.py": text for path, text in changed.items()}
    files = {path: text.encode() for path, text in (FILES | new).items()}
    return followed(files, Package(name), card.encode()).digests(files)


@pytest.mark.parametrize(
    ("name", "call"),
    [("ops", NORM), ("ops", "package.norm.impl.norm(x)"), ("ops.norm", NORM), ("ops.norm.impl", NORM)],
)
def test_what_a_call_leads_to_counts_whole(name: str, call: str) -> None:
    before = decisive(name, call)
    assert decisive(name, call, late="factor = 3\n") != before
    assert decisive(name, call, shared=FILES["ops/shared.py"].replace("* x", "* x * 1")) != before
    assert decisive(name, call, norm__impl="# a comment\n" + FILES["ops/norm/impl.py"]) == before
    assert decisive(name, call, norm__impl="# no Python(\n(" + FILES["ops/norm/impl.py"]) != before


def test_what_runs_on_the_way_counts_by_its_top_alone() -> None:
    before = decisive()
    assert decisive(other=FILES["ops/other.py"].replace("return x", "return 2 * x")) == before
    assert decisive(deep=FILES["ops/deep.py"].replace("return 1", "return 2")) == before
    assert decisive(norm__unused="x = 2\n") == before, "nothing imports it"
    for fault in (
        "import ops.shared\nops.shared.helper = other\n",
        "raise ImportError\n",
        "from ops.late import gone\n",
    ):
        assert decisive(other=FILES["ops/other.py"] + fault) != before
    assert decisive(deep=FILES["ops/deep.py"] + "import ops.shared; ops.shared.helper = None\n") != before
    assert decisive(other="def other(x:\n") != before, "it cannot be read"


def test_another_name_of_the_package_is_found_where_it_comes_from() -> None:
    before = decisive(call="package.turned(x)")
    assert decisive(call="package.turned(x)", rope="def rope(x):\n    return 2 * x\n") != before
    shared = FILES["ops/shared.py"].replace("* x", "* x * 1")
    assert decisive(call="package.turned(x)", shared=shared) == before


@pytest.mark.parametrize(
    ("call", "changed"),
    [
        ("helper(package, x)", {}),
        ("getattr(package, case.name)(x)", {}),
        (NORM, {"shared": "import importlib\nhelper = importlib.import_module('.rope', __package__).rope\n"}),
        (NORM, {"shared": "import importlib\nhelper = importlib.import_module('ops.ro' + 'pe').rope\n"}),
        (NORM, {"__init__": "import pkgutil\nfor one in pkgutil.iter_modules(__path__):\n    __import__(one.name)\n"}),
    ],
)
def test_modules_under_computed_names_are_not_missed(call: str, changed: dict[str, str]) -> None:
    before = decisive(call=call, **changed)
    assert decisive(call=call, **changed, rope="def rope(x):\n    return 2 * x\n\nrope = None\n") != before


def test_an_import_of_another_package_by_a_computed_name_leads_nowhere() -> None:
    shared = "import importlib\n\ndef helper(x):\n    return importlib.import_module(x)\n"
    assert decisive(shared=shared, rope="def rope(x):\n    return 2 * x\n") == decisive(shared=shared)


def test_files_that_are_no_python_count() -> None:
    assert "ops/tuned.json" in decisive()


OTHER = """import torch
import triton
import triton.language as tl
SIZE = 1
@triton.jit
def kernel(y):
    pass
def shown(x):
    pass
"""


@pytest.mark.parametrize(
    ("old", "new", "counts"),
    [
        ("shown(x)", "shown(x, y)", False),
        ("SIZE = 1", "SIZE = 256\nEXACT = tl.constexpr(1.5)", False),
        ("@triton.jit", "@triton.autotune(configs=[triton.Config({})], key=[])\n@triton.jit", False),
        ("def shown", "def _helper(x, y=2):\n    return x\n@triton.jit\ndef _other(x):\n    pass\ndef shown", False),
        ("def shown", "def _helper(x):\n    return x\n_helper(1)\ndef shown", True),
        ("def shown", "def __getattr__(name):\n    return 1\ndef shown", True),
        ("SIZE = 1", "SIZE = 1\nif SIZE:\n    torch.set_float32_matmul_precision('high')", True),
        ("def shown", "@torch.library.custom_op('ours::other', mutates_args=())\ndef shown", True),
        ("SIZE = 1", "torch.backends.cuda.matmul.allow_tf32 = True", True),
    ],
)
def test_of_what_runs_on_the_way_only_what_it_can_do_to_others_counts(old: str, new: str, counts: bool) -> None:
    """A project's `__init__` imports all of its kernels: a change of one must not be a change of all."""
    before = decisive(other=OTHER)
    assert (decisive(other=OTHER.replace(old, new)) != before) == counts
    assert decisive(norm__impl=FILES["ops/norm/impl.py"].replace("norm(x)", "norm(x, y=2)")) != decisive()


def test_a_constant_that_the_top_reads_counts() -> None:
    reads = "ON = False\nif ON:\n    import ops.deep\n"
    assert decisive(other=reads) != decisive(other=reads.replace("False", "True"))
