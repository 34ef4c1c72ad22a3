"""The card of my_kernels: its axis `way` names the function that is called."""

from __future__ import annotations

from typing import Any

from kernelgate import Kernel, Package


class Probed(Kernel):
    build = Package("my_kernels")
    cases = (dict(N=4096, way="plain.scale", dtype="bf16"),)

    def inputs(self, case: Any, draw: Any) -> dict[str, Any]:
        return {"x": draw(case.N)}

    def call(self, ops: Any, case: Any, out: Any, x: Any) -> None:
        module, function = case.way.split(".")
        getattr(getattr(ops, module), function)(x, out)

    def oracle(self, _: Any, x: Any) -> Any:
        return 2 * x
