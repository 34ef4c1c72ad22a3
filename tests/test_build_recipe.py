"""docs/dev_env.md, the build recipe: every command does what the page shows of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelgate.bench.build import toolchain
from tests import docs_code

PAGE = Path(__file__).parent.parent / "docs" / "dev_env.md"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(toolchain.find().cuda is None, reason="there is no nvcc"),
]


def test_every_error_is_one_that_the_compilers_print(tmp_path: Path) -> None:
    docs_code.write_files(PAGE, tmp_path)
    commands = list(docs_code.commands(PAGE))
    assert len(commands) > 8
    for command in commands:
        done = docs_code.run(command, tmp_path)
        assert (done.returncode != 0) == bool(command.shown), f"{command.line}\n{done.stdout}"
        for line in command.shown:
            assert line in done.stdout, command.line
