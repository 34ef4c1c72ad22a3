"""How an error is quoted in a sentence of ours."""

from __future__ import annotations

import json
import re

import pytest

from kernelgate.bench import record
from kernelgate.bench.core.errors import RecordError


def test_what_does_not_fit_is_one_short_line_whatever_its_keys_hold() -> None:
    strange = {f"{number}\n::error::{'x' * 5000}": 1 for number in range(20)}
    with pytest.raises(RecordError) as refused:
        record.from_json(json.dumps(strange))
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 1000
    assert re.search(r"; and \d+ more$", str(refused.value))
