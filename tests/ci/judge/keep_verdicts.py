"""Rewrites tests/data/kept_verdicts.json after a deliberate change of the statistics: run this module with `-m`.

It prints every verdict, direction and finding that changed, for the commit's message.
"""

from __future__ import annotations

import json
from typing import Any

from kernelgate.ci.judge.case import CaseVerdict
from kernelgate.ci.policy import policy
from kernelgate.ci.policy.policy import Policy
from tests.ci.judge.test_kept_verdicts import DATA, KEPT, ROOT, figure, judge_kept, judge_trace

NOT_FIGURES = ("trace", "head", "processes")


def main() -> None:
    rules = policy.load(ROOT / ".ci" / "kernelgate.toml")
    traces = [_trace(kept, rules) for kept in KEPT["traces"]]
    records = [_record(kept, rules) for kept in KEPT["records"]]
    parts = (
        f'  "{name}": [\n{_lines(part)}\n  ]' for name, part in {**KEPT, "traces": traces, "records": records}.items()
    )
    (DATA / "kept_verdicts.json").write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")


def _lines(entries: list[dict[str, Any]]) -> str:
    return ",\n".join(f"    {json.dumps(entry)}" for entry in entries)


def _trace(kept: dict[str, Any], rules: Policy) -> dict[str, Any]:
    name = " ".join(str(kept[key]) for key in NOT_FIGURES)
    return {**kept, **_figures(name, judge_trace(kept, rules), {k: kept[k] for k in kept if k not in NOT_FIGURES})}


def _record(kept: dict[str, Any], rules: Policy) -> dict[str, Any]:
    verdict = judge_kept(kept, rules)
    name = f"{kept['record']}, {kept['baseline'] or 'base'}"
    cases = [_figures(name, case, before) for case, before in zip(verdict.cases, kept["cases"], strict=True)]
    return {**kept, "verdict": verdict.verdict, "refused": verdict.refused, "cases": cases}


def _figures(name: str, verdict: CaseVerdict, before: dict[str, Any]) -> dict[str, Any]:
    now = {key: figure(verdict, key) for key in before}
    for key in ("verdict", "direction", "findings"):
        if key in before and now[key] != before[key]:
            print(f"{name}: {key} {before[key]} -> {now[key]}")
    return now


if __name__ == "__main__":
    main()
