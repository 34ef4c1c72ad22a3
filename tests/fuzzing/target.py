"""`python -m tests.fuzzing.target READER [option of libFuzzer, or folder …]`: one reader, guided by coverage."""

from __future__ import annotations

import random
import sys

import atheris

LIBRARY = ("json", "tomllib", "zipfile")
"""Of Python's own: what the readers read with."""

for name in LIBRARY:
    # Python has loaded some of them already, without what counts coverage.
    for loaded in [module for module in sys.modules if module.split(".")[0] == name]:
        del sys.modules[loaded]
with atheris.instrument_imports(include=["kernelgate", *LIBRARY], enable_loader_override=False):
    from tests.fuzzing.mutation import mutated
    from tests.fuzzing.readers import check


def main() -> None:
    reader = sys.argv.pop(1)

    def one_input(data: bytes) -> None:
        check(reader, data)

    def mutate(data: bytes, most: int, seed: int) -> bytes:
        changed = mutated(data, random.Random(seed), lambda each: atheris.Mutate(each, most))
        return changed[:most]

    atheris.Setup(sys.argv, one_input, custom_mutator=mutate)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
