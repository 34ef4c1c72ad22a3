"""Makes a card's calls with a GPU that is not there, so that Triton compiles what they launch: the worker's part.

A wrapper picks its launch by what it asks, also when it is imported: is this tensor on a GPU, of what compute
capability? Here tensors are the CPU's and say that they are cuda:0; nothing is launched. A GPU would launch the same,
until something asks for what is known only there: the GPU's other properties, such as how many multiprocessors it has,
or a tensor's values. The answer may be kept: from then on nothing is told.
"""

from __future__ import annotations

import faulthandler
import gc
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import chdir, contextmanager, nullcontext, suppress
from functools import partial, wraps
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy
import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map_only

from kernelgate.bench.build import archs
from kernelgate.bench.build.archs import Target
from kernelgate.bench.build.library import CACHE, PACKAGE
from kernelgate.bench.core import hardware
from kernelgate.bench.core.dtypes import known
from kernelgate.bench.core.errors import KernelgateError
from kernelgate.bench.kernel import loading, operands, triton_runtime
from kernelgate.bench.kernel.card import CaseAxes, Kernel
from kernelgate.bench.kernel.fuzz_trials import OFFSET, WAY
from kernelgate.bench.kernel.loading import PackageImportError
from kernelgate.bench.kernel.operands import TORCH_DTYPES, Bound, Draw
from kernelgate.bench.kernel.triton_build import SOURCES, Compiled, CompileRequest, PackageKernel
from kernelgate.bench.system.worker import Doing, Leader

SIDE = "build"
_DIAGNOSTIC = re.compile(rf"^(?:{SOURCES}/)?(?P<place>\S+?:\d+):\d+: error: (?P<text>.*)$", re.MULTILINE)
"""What Triton's compiler behind the front end prints on standard error."""
_PTXAS = re.compile(r"^ptxas.*?(?:error|fatal)\s*: (?P<text>.*)$", re.MULTILINE)
CUDA, CPU = torch.device("cuda", 0), torch.device("cpu")
_RUN_THE_KERNEL = frozenset({"CUDA", "CPU", "CompositeExplicitAutograd", "CompositeImplicitAutograd"})
"""Dispatch keys under which an operator's own code is registered."""


def run(request: CompileRequest, leader: Leader) -> Compiled:
    """Calls every case with a GPU of the target; without a target nothing is called."""
    sys.dont_write_bytecode = True  # the folder is a library's
    alias, folder = loading.alias_of(request.package, SIDE), request.library / PACKAGE
    # With these Triton compiles nothing, or keeps it elsewhere; torch.compile would compile for the CPU.
    for name in ("INTERPRET", "ALWAYS_COMPILE", "CACHE_MANAGER", "KERNEL_DUMP", "KERNEL_OVERRIDE"):
        os.environ.pop(f"TRITON_{name}", None)
    # Its lists of what belongs to a kernel name files below its cache: the same for every build, too.
    os.environ |= {"TRITON_CACHE_DIR": f"{SOURCES}/../{CACHE}", "TRITON_STORE_BINARY_ONLY": "1"}
    os.environ |= {"TORCH_COMPILE_DISABLE": "1"}
    os.dup2(os.open(folder, os.O_DIRECTORY), int(SOURCES.name), inheritable=False)
    faulthandler.enable()
    if request.target:
        pretend(archs.target(request.target.removeprefix("sm_")), alias)
    operators = loading.watch_operators(alias, folder)
    try:
        kernel = loading.load(request.card)
        before, variables = set(sys.modules), loading.variables_of(alias)
        package = loading.load_package(SOURCES, request.package, SIDE, importer=type(kernel).__module__)
    except KernelgateError as error:
        return _unloadable(request, alias, error)
    places = tuple(f"{place}{os.sep}" for place in sys.path if place)
    new = [(name, getattr(sys.modules[name], "__spec__", None)) for name in list(sys.modules) if name not in before]
    installed = (name for name, spec in new if spec and str(spec.origin).startswith(places))
    # What a package says to others through the environment, it must say before they are imported.
    leader.send(Compiled(operators=operators(), imports=() if variables else tuple(installed)))
    # Where there is nothing to compile, a call would compute on the CPU what is meant for a GPU.
    compiles = request.target and any(b"triton" in path.read_bytes() for path in folder.rglob("*.py"))
    for case, axes in request.cases.items() if compiles else ():
        leader.send(Doing(doing=case))
        timed, skipped, begun = case in request.timed, dict[str, str](), os.fstat(2).st_size
        try:
            with compiling(request, case) as made, Watch() if timed else nullcontext():  # type: ignore[no-untyped-call]
                call(kernel, package, CaseAxes(axes))
        except (Exception, SystemExit) as error:
            failed = failure_behind(error, begun)
            if failed and timed:
                return Compiled(error=failed)
            text = f"{type(error).__name__}: {loading.plain(_short(str(error)), alias)}"
            skipped[case] = failed or _said(loading.place(error, SOURCES, request.card.parent), text)
        kernels = tuple(made) if timed and not request.turn else ()
        known = timed and not (request.turn or skipped or UNFORESEEN)
        launched = {f"{request.target}/{case}": tuple(sorted({one.entry for one in kernels}))} if known else {}
        leader.send(Compiled(kernels=kernels, launched=launched, skipped=skipped))
    return Compiled(operators=operators(), done=True)


def _unloadable(request: CompileRequest, alias: str, error: KernelgateError) -> Compiled:
    """What a card or package that cannot be loaded means: a mistake, unless it may be right on a GPU."""
    why, cause = str(error), error.__cause__
    if isinstance(error, PackageImportError):
        why = _said(error.place, error.text)
    lacks = (cause.name or "").partition(".")[0] if isinstance(cause, ModuleNotFoundError) else ""
    if lacks not in ("", alias, request.package.partition(".")[0]):
        why += f"; if {lacks} is of another project, install it in the Python that compiles: {sys.executable}"
    if request.target and (why == str(error) or isinstance(cause, ImportError | SyntaxError)):
        return Compiled(error=why)
    return Compiled(skipped=dict.fromkeys(request.cases, why), done=True)


UNFORESEEN: set[str] = set()
"""What was asked that only a GPU knows."""
READS_VALUES = {torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape}


class Watch(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """While it is entered, notes what reads values of tensors."""

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        indexes = func is torch.ops.aten.index.Tensor
        tensors = [one for one in args[1] if isinstance(one, torch.Tensor)] if indexes else []
        by_mask = any(one.dtype in (torch.bool, torch.uint8) for one in tensors)
        if READS_VALUES & {*getattr(func, "tags", ())} and (by_mask or not indexes):
            UNFORESEEN.add(str(func))
        return func(*args, **(kwargs or {}))


class _Asked(SimpleNamespace):
    """Properties of a GPU: whoever reads others than its compute capability is noted."""

    def __getattribute__(self, name: str) -> Any:
        if name not in ("major", "minor") and not name.startswith("__"):
            UNFORESEEN.add(name)
        return super().__getattribute__(name)

    __getitem__ = __getattribute__


def compile_launcher(compiled: Any) -> None:
    """What Triton needs the C compiler for: else each process waits for it. Nothing without a driver to link with."""
    from triton.backends.nvidia import driver

    # The compiler writes the path of its source into the library, whose bytes shall be the same for every build.
    here = patch.object(tempfile, "TemporaryDirectory", lambda: nullcontext("."))
    with tempfile.TemporaryDirectory() as folder, chdir(folder), here, suppress(Exception):
        driver.CudaUtils()
        driver.CudaLauncher(compiled.src, compiled.metadata)


@contextmanager
def compiling(request: CompileRequest, case: str) -> Iterator[list[PackageKernel]]:
    """Until the block ends, `kernel[grid](…)` compiles, and is added to what this gives: of a timed case all that
    @triton.autotune chooses from, of another one that which is fuzzed."""
    from triton.runtime.jit import JITFunction

    made, configs, launch = list[PackageKernel](), list[str | None]([None]), JITFunction.run
    timed, axes = case in request.timed, request.cases[case]

    def compile_instead(kernel: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:  # noqa: ARG001
        try:
            compiled = launch(kernel, *args, grid=grid, warmup=True, **kwargs)
        except Exception as error:
            error.of_kernel = kernel  # type: ignore[attr-defined] # a launcher may catch it, and raise another
            raise
        if compiled is None:
            UNFORESEEN.add(kernel.__name__)
            return None
        if timed:
            compile_launcher(compiled)
        entry = Path(next(iter(compiled.metadata_group.values()))).parent.name
        name = f"{kernel.__name__}[{configs[-1]}]" if configs[-1] else kernel.__name__
        made.append(PackageKernel(name=name, target=request.target or "", entry=entry, case=case, config=configs[-1]))
        return compiled

    tuning = triton_runtime.every_config(configs.append, request.turn) if timed else triton_runtime.one_config(axes)
    with patch.object(JITFunction, "run", compile_instead), tuning:
        yield made


def call(kernel: Kernel, package: Any, case: CaseAxes) -> None:
    """One call of the card; of a case of misaligned tensors, which Triton has other kernels for, one more of each."""
    given = operands.inputs(kernel, case, BlankDraw(case, "cpu", 0))
    outs = operands.empty_outputs(kernel, operands.output_shapes(kernel, case, given), "cpu")
    bound = Bound(kernel, package)
    bound.prepared(case, given, outs)()

    def off(which: str, name: str, tensor: torch.Tensor) -> torch.Tensor:
        return torch.zeros(tensor.numel() + 1, dtype=tensor.dtype)[1:].view(tensor.shape) if name == which else tensor

    for name, _ in operands.tensors({**given, **outs}) if case.get(WAY) == OFFSET else ():
        inputs, outputs = (operands.changed_by_name(values, partial(off, name)) for values in (given, outs))
        with suppress(Exception):  # it may refuse that
            bound.prepared(case, inputs, outputs)()


def failure_behind(raised: BaseException, begun: int) -> str | None:
    """Place, such as "my_kernels/swiglu.py:12", and text of the kernel's error that led to this one; None where no
    kernel's did. `begun`: where what is printed about it may begin in the file of standard error."""
    from triton.compiler.errors import CompilationError
    from triton.runtime import errors, jit

    error: Any = raised
    while error is not None and not hasattr(error, "of_kernel"):
        error = error.__cause__ or error.__context__
    if error is None:
        return None
    if isinstance(error, CompilationError):
        while isinstance(error.__cause__, CompilationError):  # one for each function on the way: the innermost is wrong
            error = error.__cause__
        functions = (value for value in gc.get_objects() if issubclass(type(value), jit.JITCallable))
        function = next((one for one in functions if one.src == error.src), None)
        place = _at(function, getattr(error.node, "lineno", 1)) if function is not None else ""
        return _said(place, error.error_message or str(error.__cause__ or error))
    if isinstance(error, errors.PTXASError):
        killed = re.search(r"failed with error code -(\d+)$", str(error), re.MULTILINE)
        match = _PTXAS.search(str(error))
        why = f"ptxas died due to signal {killed[1]}" if killed else f"ptxas: {match['text']}" if match else str(error)
        return _said(_at(error.of_kernel, 1), why)
    printed = os.pread(2, os.fstat(2).st_size - begun, begun).decode(errors="replace")
    if match := _DIAGNOSTIC.search(printed):
        return _said(match["place"], match["text"])
    place = loading.place(error, SOURCES) or _at(error.of_kernel, 1)
    return _said(place, f"{type(error).__name__}: {_short(str(error))}")


def _said(place: str, text: str) -> str:
    return f"{place}: {_short(text)}" if place else _short(text)


def _short(text: str) -> str:
    """The first line that says something."""
    return next(filter(None, map(str.strip, text.splitlines())), "no message")[:500]


def _at(function: Any, line: int) -> str:
    """The place of a line of the function, counted from 1 at its `def`."""
    decorators = next((at for at, text in enumerate(function.raw_src) if text.lstrip().startswith("def ")), 0)
    file = function.fn.__code__.co_filename.removeprefix(f"{SOURCES}/")
    return f"{file}:{function.starting_line_number + decorators + line - 1}"


def pretend(target: Target, alias: str) -> None:
    """From now on this process sees one GPU of the target's capability. `alias`: the package's in sys.modules."""
    from triton.backends.compiler import GPUTarget
    from triton.runtime import driver

    # The first GPU in the table with this compute capability, or the one that comes before it.
    capability = target[:2]
    models = {archs.target(one.limits.target.removeprefix("sm_"))[:2]: one for one in (*hardware.GPUS.values(),)[::-1]}
    model = models[max((one for one in models if one <= capability), default=min(models))]
    properties = _Asked(  # by torch's names, and by Triton's
        name=f"NVIDIA {model.name}",
        major=capability[0],
        minor=capability[1],
        **dict.fromkeys(("multi_processor_count", "multiprocessor_count"), model.sm_count),
        **dict.fromkeys(("regs_per_multiprocessor", "max_num_regs"), model.limits.registers),
        **dict.fromkeys(("shared_memory_per_block_optin", "max_shared_mem"), model.limits.block_shared_bytes),
        **dict.fromkeys(("warp_size", "warpSize"), 32),
        shared_memory_per_block=48 * 1024,
        shared_memory_per_multiprocessor=model.limits.shared_bytes,
        max_threads_per_multi_processor=32 * model.limits.warps,
        total_memory=80 * 2**30,
        L2_cache_size=int(model.l2_bytes),
        sm_clock_rate=1_500_000,
        mem_clock_rate=2_500_000,
        mem_bus_width=5120,
    )
    nothing = ("init", "_lazy_init", "set_device", "synchronize", "empty_cache", "set_stream", "manual_seed")
    of_torch = {
        **dict.fromkeys(nothing),
        **dict.fromkeys(("is_available", "is_initialized", "is_bf16_supported"), True),
        **dict.fromkeys(("current_stream", "default_stream"), _Idle()),
        **dict.fromkeys(("device", "device_of", "stream"), nullcontext()),  # `with torch.cuda.device(x):`
        "device_count": 1,
        "current_device": 0,
        "is_current_stream_capturing": False,
        "get_device_capability": capability,
        "get_device_properties": properties,
    }
    # A loaded kernel is its module, function, registers, spills, and the most threads of a block.
    loaded = {"get_device_properties": properties, "load_binary": (0, 0, 32, 0, 1024), "unload_module": None}
    of_triton = {
        "launcher_cls": lambda *_: None,
        "get_current_target": GPUTarget("cuda", 10 * capability[0] + capability[1], 32),
        **dict.fromkeys(("get_current_device", "get_current_stream"), 0),
        "set_current_device": None,
        "get_device_capability": capability,
        "get_active_torch_device": CUDA,
        "get_device_interface": torch.cuda,
        "get_benchmarker": _benchmark,
    }
    _answer(torch.cuda, of_torch)
    torch.cuda.get_device_name = lambda *_: properties.name
    torch.cuda.Stream = torch.cuda.ExternalStream = torch.cuda.Event = _Idle  # type: ignore[assignment, misc]
    torch.version.cuda = torch.version.cuda or "13.0"
    _answer(torch.Tensor, {"record_stream": None})
    _answer(torch._C, {"_cuda_getCurrentRawStream": 0})
    driver.set_active(_answer(SimpleNamespace(utils=_answer(SimpleNamespace(), loaded)), of_triton))
    claims = ClaimsCuda()
    torch.library.Library.impl = _on_the_cpu(claims, alias)  # type: ignore[method-assign]
    claims.__enter__()  # type: ignore[no-untyped-call]


class ClaimsCuda(TorchFunctionMode):
    """While it is entered, every tensor says that it is on cuda:0, and what is wanted there is made on the CPU."""

    _answers: Mapping[Any, Any] = {
        torch.Tensor.is_cuda.__get__: True,  # type: ignore[attr-defined]
        torch.Tensor.is_cpu.__get__: False,  # type: ignore[attr-defined]
        torch.Tensor.device.__get__: CUDA,
        torch.Tensor.get_device: 0,
    }
    _products = frozenset(
        (
            *(torch.matmul, torch.mm, torch.bmm, torch.addmm, torch.baddbmm, torch.einsum, torch.nn.functional.linear),
            *(torch.Tensor.matmul, torch.Tensor.__matmul__, torch.Tensor.mm, torch.Tensor.bmm),
            *(torch.conv1d, torch.conv2d, torch.conv3d),
        )
    )
    """What takes a GPU a moment and a CPU minutes: answered with zeros of the right shape and dtype."""

    def __torch_function__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        if func in self._answers:
            return self._answers[func]
        if func in (torch.Tensor.tolist, torch.Tensor.numpy, torch.Tensor.__array__):
            UNFORESEEN.add(func.__name__)
        if func in (torch.Tensor.cuda, torch.Tensor.pin_memory):
            return args[0]
        named = dict(kwargs or {})
        if func is torch.device:
            return func(*args, **named)
        if named.get("device") is not None:
            named["device"] = CPU
        if "pin_memory" in named:
            named["pin_memory"] = False
        if func in self._products:
            return _blank(func, args, named)
        is_cuda = (isinstance(one, str | torch.device) and str(one).startswith("cuda") for one in args)
        args = tuple(CPU if there else one for one, there in zip(args, is_cuda, strict=True))
        try:
            return func(*args, **named)
        except NotImplementedError:  # the CPU has no code for this dtype
            UNFORESEEN.add(func.__name__)
            with suppress(Exception):
                return _blank(func, args, named)
            raise


def _blank(func: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """Zeros of the shape and dtype that `func` would give."""
    if named.get("out") is not None:
        return named["out"]
    empty = tree_map_only(torch.Tensor, lambda one: one.to("meta") if one.dim() else one.item(), (args, named))
    return torch.zeros_like(func(*empty[0], **empty[1]), device=CPU)


def _on_the_cpu(claims: ClaimsCuda, alias: str) -> Callable[..., None]:
    """Library.impl for operators that the package defines: what is meant for CUDA is called for the CPU's tensors, in
    this mode again, for torch leaves every one there."""
    register: Callable[..., None] = torch.library.Library.impl
    for_cuda: set[tuple[str, str]] = set()

    def impl(library: Any, op_name: Any, fn: Any, dispatch_key: str = "", **options: Any) -> None:
        key = dispatch_key or library.dispatch_key
        operator = (library.ns, str(op_name))
        if key not in _RUN_THE_KERNEL or not loading.called_by(alias):
            return register(library, op_name, fn, key, **options)
        if key == "CUDA":
            for_cuda.add(operator)
            key, options["allow_override"] = "CPU", True
        elif key == "CPU" and operator in for_cuda:
            return None

        @wraps(fn)
        def inside(*args: Any, **kwargs: Any) -> Any:
            with claims, Watch():  # type: ignore[no-untyped-call]
                return fn(*args, **kwargs)

        return register(library, op_name, inside, key, **options)

    return impl


class BlankDraw(Draw):
    """Zeros in place of real numbers: numpy's, which the system makes when they are read, cost no time and memory."""

    def __call__(self, *shape: int, dtype: str | None = None) -> torch.Tensor:
        wanted = TORCH_DTYPES[known(dtype)] if dtype else self.dtype
        if not wanted.is_floating_point:
            return super().__call__(*shape, dtype=dtype)
        return torch.from_numpy(numpy.zeros((*shape, wanted.itemsize), numpy.uint8)).view(wanted).view(shape)

    def normal(self, *shape: int) -> torch.Tensor:
        return self(*shape, dtype="fp32")

    def uniform(self, low: float, high: float, *shape: int) -> torch.Tensor:  # noqa: ARG002 - as Draw has them
        return self(*shape, dtype="fp32")


def _answer(asked: Any, answers: Mapping[str, Any]) -> Any:
    """Each answer is a function of its own, for torch.compile's tables hold no function twice."""
    for name, answer in answers.items():
        setattr(asked, name, lambda *_, answer=answer, **__: answer)
    return asked


class _Idle:
    """A stream or an event: everything on it is done at once."""

    cuda_stream, device = 0, CUDA


_DONE = ("__init__", "record", "wait", "synchronize", "record_event", "wait_event", "wait_stream")
_answer(_Idle, {**dict.fromkeys(_DONE), "query": True, "elapsed_time": 1.0})


def _benchmark(call: Callable[[], object], *_: object, quantiles: Sequence[float] | None = None, **__: object) -> Any:
    """What measures for a tuner of the package's own: the call is made, and takes as long as any other."""
    call()
    return [1.0] * len(quantiles) if quantiles else 1.0
