from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def a_fast_oracle(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine it would be too slow for every entry to have a reference."""
    from kernelgate.bench.timing import references

    monkeypatch.setattr(references, "REFERENCE_S", {"cpu": 1e6})
