"""A card's call held against the schemas that its library registers: real libraries."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from kernelgate.bench.build.library import Library
from kernelgate.bench.core.errors import CardError, CompileError, KernelgateError
from kernelgate.bench.kernel import commit, operands
from kernelgate.bench.kernel.triton_build import Compiled, CompileRequest, compile_package
from kernelgate.bench.system.supervise import TimeLimits
from tests.miniature import SCALE, SCALE_CARD, SCALE_FILES, write

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("no_gpu")]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return write(tmp_path / "tree", SCALE_FILES)


def built(tree: Path) -> Library:
    return commit.build_tree(tree).built["scale"]


def scaled(library: Library, factor: float) -> list[float]:
    """What its operator makes of 0, 1, 2."""
    out = torch.zeros(3)
    operands.load(library).scale(out, torch.arange(3.0), factor)
    return out.tolist()


CALL = "ops.scale(out, x, factor)"
MISSING = "12: call: scale() is missing value for argument 'factor'."
WORD = "call: scale() Expected a value of type 'float' for argument 'factor' but instead found type 'str'."
HELPED = """\
        self.helper(ops, out, x)

    def helper(self, ops, out, x):
        ops.scale(out, x, "much")
"""
NEEDS_TORCH = "import torch\n\ntorch.no_such_name(torch.zeros(1))\nfrom kernelgate"
WRONG: dict[str, tuple[str, str, str]] = {
    "a word": (CALL, "ops.scale(out, x, '2')", f"12: {WORD}"),
    "of an overload": (CALL, "ops.scale.default(out, x)", MISSING),
    "in a helper": (f"        {CALL}\n", HELPED, f"15: {WORD}"),
    "nothing is called": (CALL, "out.copy_(x)", "11: call: call() called no operator of the library, which registers"),
    "a mistake that only torch shows": (
        "from kernelgate",
        NEEDS_TORCH,
        "3: AttributeError: module 'torch' has no attr",
    ),
}


@pytest.mark.parametrize(("old", "new", "says"), WRONG.values(), ids=WRONG)
def test_a_card_that_does_not_fit_its_library_is_named_with_its_line(tree: Path, old: str, new: str, says: str) -> None:
    card = SCALE_CARD.replace(old, new)
    assert card != SCALE_CARD
    write(tree, {".ci/kernels/scale.py": card})
    with pytest.raises(CardError) as raised:
        built(tree)
    assert str(raised.value).startswith(f".ci/kernels/scale.py:{says}")


def test_a_library_that_registers_under_another_name(tree: Path) -> None:
    """By way of a macro, which is no name that the build could have read."""
    text = "#define OURS another_scale\n" + SCALE.replace("KERNELGATE_NAMESPACE", "OURS")
    write(tree, {"csrc/scale.cpp": text})
    with pytest.raises(CardError) as raised:
        built(tree)
    said = str(raised.value)
    assert said.startswith(".ci/kernels/scale.py:5: build: the library registers no operator under ")
    assert said.endswith("it registers: another_scale::scale")


def test_overloads(tree: Path) -> None:
    """A call by the operator's name alone may mean any of them."""
    defined = 'm.def("scale(Tensor(a!) out, Tensor x, float factor) -> ()");'
    more = f'{defined} m.def("scale.by_tensor(Tensor(a!) out, Tensor x, Tensor factor, *, int? axis=None) -> Tensor");'
    write(tree, {"csrc/scale.cpp": SCALE.replace(defined, more)})
    calls = "ops.scale(out, x, 2.0); ops.scale(out, x, x, axis=1); ops.scale.by_tensor(out, x, x)"
    write(tree, {".ci/kernels/scale.py": SCALE_CARD.replace(CALL, calls)})
    assert built(tree).manifest.card == "scale"
    write(tree, {".ci/kernels/scale.py": SCALE_CARD.replace(CALL, "ops.scale(out, x, '2')")})
    with pytest.raises(CardError, match=r"'float' for argument 'factor' but .*'str'\.; .*'Tensor' for argument "):
        built(tree)


def test_an_extension_of_one_cuda_source(tree: Path) -> None:
    """Many have no .cpp: what nvcc compiles registers the operators, too."""
    (tree / "csrc" / "scale.cpp").unlink()
    write(tree, {"csrc/scale.cu": SCALE + "__global__ void kernel(float* out) { *out = 1; }\n"})
    library = built(tree)
    assert [(kernel.name, kernel.target) for kernel in library.manifest.kernels] == [("kernel", "sm_89")]
    assert scaled(library, 2.0) == [0.0, 2.0, 4.0]


CLASSIC = """\
#include <torch/library.h>

void scale(at::Tensor out, const at::Tensor& x, double factor) { out.copy_(x).mul_(factor); }

TORCH_LIBRARY(NAME, m) { m.def("scale(Tensor(a!) out, Tensor x, float factor) -> ()"); }
TORCH_LIBRARY_IMPL(NAME, CPU, m) { m.impl("scale", &scale); }
"""
EXTENSION = 'Extension("csrc/scale*")'


def classic_card(version: str) -> str:
    # Without optimization, for torch's headers are large.
    return SCALE_CARD.replace(EXTENSION, f'Extension("csrc/scale*", torch="{version}", flags=["-O0"])')


def test_a_namespace_of_the_sources_own(tree: Path) -> None:
    write(tree, {"csrc/scale.cpp": SCALE.replace("KERNELGATE_NAMESPACE", "my_stable_ops")})
    library = built(tree)
    assert (library.manifest.namespace, library.manifest.shared_namespace) == ("my_stable_ops", True)
    assert scaled(library, 2.0) == [0.0, 2.0, 4.0]


def test_sources_that_need_one_torch(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    card = classic_card(torch.__version__.split("+")[0])
    write(tree, {"csrc/scale.cpp": CLASSIC.replace("NAME", "my_classic_ops"), ".ci/kernels/scale.py": card})
    library = built(tree)
    manifest = library.manifest
    found = (manifest.namespace, manifest.shared_namespace, manifest.torch)
    assert found == ("my_classic_ops", True, torch.__version__)
    assert scaled(library, 2.0) == [0.0, 2.0, 4.0]
    monkeypatch.setattr(torch, "__version__", "2.99.0+cu130")
    with pytest.raises(KernelgateError, match=r"was compiled for torch .* alone, and torch 2\.99\.0\+cu130 is "):
        operands.load(library)


@pytest.mark.parametrize("version", ["2.1", "2.13.0+cu130"])
def test_sources_for_a_torch_that_is_not_here(tree: Path, version: str, no_compiling: Callable[[], None]) -> None:
    write(tree, {"csrc/scale.cpp": CLASSIC, ".ci/kernels/scale.py": classic_card(version)})
    no_compiling()
    with pytest.raises(KernelgateError) as raised:
        built(tree)
    assert f"for torch {version}, but torch {torch.__version__} is installed here: install " in str(raised.value)
    assert not isinstance(raised.value, CompileError)


def test_a_library_that_this_torch_cannot_load(tree: Path) -> None:
    """Such as one that calls what only a torch with CUDA has: found while building, not while measuring."""
    text = (
        CLASSIC.replace("NAME", "my_ops")
        .replace("void scale", "int gone();\nvoid scale")
        .replace("{ out", "{ gone(); out")
    )
    write(tree, {"csrc/scale.cpp": text, ".ci/kernels/scale.py": classic_card(torch.__version__)})
    says = r"^\.ci/kernels/scale\.py:5: build: .*cannot be loaded by torch .*: .* undefined symbol: _Z4gonev$"
    with pytest.raises(CardError, match=says):
        built(tree)


def test_what_an_installed_package_registers_is_not_the_packages_own(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both sides have it from one file; what lies in a package's own folder each side has for itself."""
    write(tree, {"csrc/scale.cpp": SCALE.replace("KERNELGATE_NAMESPACE", "third_party")})
    compiled = built(tree).path.read_bytes()
    load = "import pathlib, torch\ntorch.ops.load_library(pathlib.Path(__file__).with_name('kernel.so'))\n"
    own = 'torch.library.custom_op("my_ops::own", lambda: None, mutates_args=(), schema="() -> ()")\n'
    installed = write(tmp_path / "installed", {"third_party/__init__.py": load})
    (installed / "third_party" / "kernel.so").write_bytes(compiled)
    monkeypatch.setenv("PYTHONPATH", str(installed))

    def compiled_package(name: str, code: str, *carried: str) -> Compiled:
        library = write(tmp_path / name, {"package/my_kernels/__init__.py": code, "cache/of": ""})
        for file in carried:
            (library / "package" / "my_kernels" / file).write_bytes(compiled)
        card = tree / ".ci/kernels/scale.py"
        asked = CompileRequest(library=library, package="my_kernels", card=card, cases={}, timed=frozenset())
        return compile_package(asked, (None,), TimeLimits())

    imports = compiled_package("imports", f"import third_party, torch\n{own}")
    assert (imports.operators, "third_party" in imports.imports) == ({"my_ops::own"}, True)
    carries = compiled_package("carries", f"{load}{own}", "kernel.so")
    assert (carries.operators, "my_kernels" in carries.imports) == ({"my_ops::own", "third_party::scale"}, False)
    sets = compiled_package("sets", "import os\nos.environ['ASKED'] = '1'\nimport third_party")
    assert sets.imports == (), "it may read what the package sets"
    write(installed, {"outspoken.py": "import os\nos.environ.setdefault('TOLD', '1')\n"})
    assert "outspoken" in compiled_package("beside", "import outspoken").imports, "it is its own to set"
