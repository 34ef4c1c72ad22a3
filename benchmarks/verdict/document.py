"""The measured figures as Markdown tables and a plot."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.tables import markdown
from benchmarks.verdict.records import PROCESSES

STYLES = {
    "kernelgate, direction": ("#0b6e4f", "o", "-"),
    "kernelgate, gate": ("#0b6e4f", "s", "--"),
    "intervals + U test + delta": ("#b5651d", "v", "-"),
    "U test alone": ("#c1121f", "x", "-"),
    "medians, 3%": ("#6c757d", "^", "-"),
    "medians, 10%": ("#adb5bd", "^", "-"),
    "nvbench-compare": ("#3a6ea5", "D", "-"),
    "asv, factor 1.01": ("#7b2cbf", "P", "-"),
}
"""Colour, marker and line, so that the curves differ without colour as well."""
APART = 0.06


@dataclass(frozen=True)
class Rates:
    """Shares of records, by rule."""

    slower: Mapping[str, float]
    faster: Mapping[str, float]
    equivalent: float
    """By our rule."""


Measured = Mapping[tuple[str, float], Rates]
"""By scenario and effect, in percent of extra work."""


def of_rules(draws: int, detected: Measured, stored: Measured, hard: Measured) -> Iterator[str]:
    """How often each rule is wrong, and how often right."""
    yield (
        f"Each figure: {draws} records drawn with a fixed seed ({5 * draws} in the first table); "
        f"by the rule of three, 0.00% stands for a true rate below {300 / draws:.2f}% "
        f"({300 / (5 * draws):.2f}% in the first table)."
    )
    yield "**Identical code called different** (slower or faster), base and head of one record:"
    yield _table(detected, 0.0, _different, 2)
    yield "**The same against a stored baseline** from other processes:"
    yield _table(stored, 0.0, _different, 2)
    yield "**Hard cases, identical code called different:**"
    yield _table(hard, 0.0, _different, 2)
    yield "**Hard cases, a head 5% slower called slower.** Where our rule says neither, it names the reason instead:"
    yield _table(hard, 5.0, _slower, 0)
    yield "**A slower head called slower**, by extra work, base and head of one record:"
    yield _by_rule({f"{_words(name)}, +{e:g}%": rates.slower for (name, e), rates in detected.items() if e > 0}, 1)
    yield "**A head with 2% extra work called slower against a stored baseline:**"
    yield _table(stored, max(effect for _, effect in stored), _slower, 1)


def plot(power: Measured, path: Path) -> None:
    """Power against effect, one curve a rule, one panel a set of traces."""
    import matplotlib as mpl

    mpl.use("svg")
    from matplotlib import pyplot

    mpl.rcParams.update({"svg.hashsalt": "kernelgate", "font.size": 9, "svg.fonttype": "none"})
    sets, effects = _axes(power)
    figure, panels = pyplot.subplots(2, 2, figsize=(9.5, 7), sharex=True, sharey=True, layout="constrained")
    for name, panel in zip(sets, panels.flat, strict=True):
        for order, (rule, (colour, marker, line)) in enumerate(STYLES.items()):
            shares = [100 * power[name, effect].slower[rule] for effect in effects]
            # Side by side and slightly apart, because most curves lie on 0 or on 100.
            places = [place + APART * (order - len(STYLES) / 2) for place in range(len(effects))]
            width = 2.2 if rule.startswith("kernelgate") else 1.2
            panel.plot(places, shares, line, color=colour, marker=marker, label=rule, markersize=5, linewidth=width)
        panel.set_title(_words(name))
        panel.set_xticks(range(len(effects)), [f"{effect:g}" for effect in effects])
        panel.grid(alpha=0.3)
    figure.supxlabel("extra work of the head, %")
    figure.supylabel("records called slower, %")
    figure.legend(*panels.flat[0].get_legend_handles_labels(), loc="outside upper center", ncols=4, frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, format="svg", metadata={"Date": None, "Title": "Power of decision rules against effect"})
    pyplot.close(figure)


def _different(rates: Rates) -> Mapping[str, float]:
    return {rule: share + rates.faster[rule] for rule, share in rates.slower.items()}


def _slower(rates: Rates) -> Mapping[str, float]:
    return rates.slower


def _table(measured: Measured, effect: float, shares: Callable[[Rates], Mapping[str, float]], digits: int) -> str:
    """One row a scenario, one column a rule."""
    rows = {_words(name): shares(rates) for (name, other), rates in measured.items() if other == effect}
    return _by_rule(rows, digits)


def _by_rule(rows: Mapping[str, Mapping[str, float]], digits: int) -> str:
    body = [[name, *(_percent(share, digits) for share in shares.values())] for name, shares in rows.items()]
    return markdown(["", *next(iter(rows.values()))], body)


def own(detected: Measured, taken: Mapping[tuple[str, float], float]) -> Iterator[str]:
    """`taken`: mean processes until `kernelgate bench` stops."""
    yield f"**Our verdict beyond direction**, and the processes that `kernelgate bench` takes of {PROCESSES}:"
    sets, effects = _axes(detected)
    body = [
        [f"{_words(name)}: equivalent", *(_percent(detected[name, effect].equivalent, 1) for effect in effects)]
        for name in sets
    ]
    body += [[f"{_words(name)}: processes", *(f"{taken[name, effect]:.2f}" for effect in effects)] for name in sets]
    mean = sum(taken.values()) / len(taken)
    yield markdown(["", *(f"+{effect:g}%" for effect in effects)], body)
    share = _percent(mean / PROCESSES, 0)
    yield f"Over the whole mix: {mean:.2f} processes of {PROCESSES}, {share} of the GPU time."


def _words(name: str) -> str:
    return name.replace("_", ", ")


def _axes(power: Measured) -> tuple[list[str], list[float]]:
    return list(dict.fromkeys(name for name, _ in power)), sorted({effect for _, effect in power})


def _percent(share: float, digits: int) -> str:
    return f"{100 * share:.{digits}f}%"
