"""Prints the schema: `python -m kernelgate.bench.record > docs/run-record.schema.json`."""

from __future__ import annotations

import json

from kernelgate.bench.record.storage import json_schema

print(json.dumps(json_schema(), indent=2))
