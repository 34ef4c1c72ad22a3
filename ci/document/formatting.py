"""Numbers with their units, and names that people use: the vocabulary of the report."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import Final

from kernelgate.bench.core import dtypes
from kernelgate.bench.record import Axes, Card, Case, CaseKey, Device
from kernelgate.ci.document.escape import visible
from kernelgate.ci.document.model import Code, Line, Piece

LARGEST_LOG: Final = 25.0
"""Beyond it, a bound says no more than "anything is possible"; e to its power is still a number to print."""


def as_percent(logarithm: float) -> float:
    """A log ratio as a change in percent."""
    return 100 * math.expm1(min(logarithm, LARGEST_LOG))


MISSING = "—"
NOT_MEASURED = "not measured"
REFERENCE = "PyTorch"
"""What is timed beside, where a card does not say."""
LARGEST = 100_000
"""Percent; of a larger change only that is said."""
MAX_LABEL = 80
"""Characters of a name that a card gives; more would fill a table's cell."""

_TIME_UNITS = ((1e-3, "ns"), (1.0, "µs"), (1e3, "ms"), (1e6, "s"))
_GPU_WORDS = re.compile(
    r"(?:GeForce|RTX|GTX|Ti|SUPER|PCIe|SXM\d?|NVL|HBM\d\w?|Ada|Generation|[A-Z]{1,2}\d{1,4}|\d{1,4}(?:GB)?)"
)
_CPU_FAMILY = re.compile(r"(AMD|Intel)\b.*?\b(EPYC|Ryzen|Threadripper|Xeon|Core)\b")
_AXIS = re.compile(r"[A-Za-z_]\w{0,31}", re.ASCII)
_WORD = re.compile(r"[A-Za-z0-9][\w.+-]{0,39}", re.ASCII)
_COMMIT = re.compile(r"[0-9a-f]{7,64}")


def significant(value: float, digits: int = 4) -> str:
    """`value` with so many significant digits, without an exponent where people would not write one."""
    if value == 0 or not math.isfinite(value):
        return MISSING if value else "0"
    magnitude = math.floor(math.log10(abs(value)))
    shown = f"{value:,.{max(0, digits - 1 - magnitude)}f}" if -4 <= magnitude < 9 else f"{value:.{digits - 1}e}"
    return shown.replace("-", "−")


def plain(value: float) -> str:
    """Three significant digits, however large or small the value is: "0.001", "10,000,000,000"."""
    if value < 1e-9:
        return "almost 0"
    if value > 1e15:
        return "over 1,000,000,000,000,000"
    return f"{float(f'{value:.3g}'):,.10f}".rstrip("0").rstrip(".")


def durations(*microseconds: float | None) -> tuple[str, ...]:
    """Times in one unit, the one that suits the shortest, so that they can be compared at a glance."""
    known = [us for us in microseconds if us is not None]
    shortest = min(known, default=1.0)
    scale, unit = next((pair for pair in reversed(_TIME_UNITS) if shortest >= pair[0]), _TIME_UNITS[0])
    return tuple(MISSING if us is None else f"{significant(us / scale)} {unit}" for us in microseconds)


def percent(value: float, places: int = 1, sign: bool = False) -> str:
    """Such as "4.9%", or with `sign` "+4.9%" and "−0.1%"; what rounds to zero has no sign."""
    if math.isnan(value):
        return f"{MISSING}%"
    if abs(value) > LARGEST:
        return f"over {'−' if value < 0 else '+' if sign else ''}{LARGEST:,.0f}%"
    rounded = round(value, places)
    mark = "" if rounded == 0 else "−" if rounded < 0 else "+" if sign else ""
    return f"{mark}{abs(rounded):,.{places}f}%"


def _believable(change: float, digits: int) -> float:
    """A change of time that is none of −100%, which nothing reaches, whatever the decimals."""
    return max(change, 0.1**digits - 100)


def _ends(interval: tuple[float, float], digits: int, sign: bool = False, fell: bool = False) -> tuple[str, str]:
    """Both ends, without "%". A slower case counts upwards, one that `fell` downwards: both read as small to large."""
    low, high = (_believable(one, digits) for one in interval)
    low, high = (-high, -low) if fell else (low, high)
    return percent(low, digits, sign)[:-1], percent(high, digits, sign)[:-1]


def places(interval: tuple[float, float] | None) -> int:
    """Decimals worth showing: two where the interval is so narrow that one would hide it."""
    return 2 if interval is not None and abs(interval[1] - interval[0]) < 0.1 else 1


def amount(change: float | None, interval: tuple[float, float] | None) -> tuple[str, str]:
    """The size of a change and its interval, without direction: ("4.9%", "(4.8 to 5.0%)")."""
    if change is None:
        return "an unknown amount", "(not measured)"
    if interval is None:
        return percent(abs(change)), "(interval not measured)"
    digits = places(interval)
    low, high = _ends(interval, digits, fell=change < 0)
    return percent(abs(_believable(change, digits)), digits), f"({low} to {high}%)"


def moved(change: float, than: str = "", as_: str = "") -> str:
    """ "4.9% slower", or of what rounds to nothing "as fast"; and what it is compared with."""
    size = percent(abs(change))
    return f"as fast{as_}" if size == percent(0.0) else f"{size} {'slower' if change > 0 else 'faster'}{than}"


def over(change: float, interval: tuple[float, float], direction: str, cases: str) -> str:
    """A mean: "1.20% slower over 27 cases [1.15, 1.25]", or "no certain change over 27 cases [−0.02, +0.03]"."""
    digits = 2 if abs(interval[1] - interval[0]) < 0.5 else 1
    if direction == "none":
        low, high = _ends(interval, digits, sign=True)
        return f"no certain change over {cases} [{low}, {high}]"
    low, high = _ends(interval, digits, fell=change < 0)
    return f"{percent(abs(_believable(change, digits)), digits)} {direction} over {cases} [{low}, {high}]"


def between(interval: tuple[float, float], digits: int) -> str:
    """The interval in words, small to large where both ends lie on one side."""
    low, high = (_believable(bound, digits) for bound in interval)
    if low <= -50 and high >= 100:
        return "between less than half and more than double the time"
    if low > 0:
        return f"between {percent(low, digits)} and {percent(high, digits)}"
    if high < 0:
        return f"between {percent(-high, digits)} and {percent(-low, digits)}"
    return f"between {percent(-low, digits)} faster and {percent(high, digits)} slower"


def signed(change: float | None, interval: tuple[float, float] | None) -> tuple[str, str]:
    """A change and its interval for a table: ("+4.9%", "[+4.8, +5.0]")."""
    if change is None:
        return NOT_MEASURED, ""
    if interval is None:
        return percent(change, sign=True), "(interval not measured)"
    digits = places(interval)
    low, high = _ends(interval, digits, sign=True)
    return percent(_believable(change, digits), digits, sign=True), f"[{low}, {high}]"


def threshold(value: float) -> str:
    """A limit as the policy writes it: "3%", "0.5%"."""
    return f"{f'{value:.10f}'.rstrip('0').rstrip('.')}%"


def about(value: float) -> str:
    """How small a change a run could see: two digits say enough, such as "0.13%" or "2.4%"."""
    return "over 100%" if value >= 100 else "under 0.001%" if value < 0.001 else f"{float(f'{value:.2g}'):g}%"


def probability(p: float | None) -> str:
    if p is None:
        return MISSING
    return "< 0.0001" if p < 0.0001 else f"{p:.4f}"


def sizes(byte_count: float | None) -> str:
    if byte_count is None:
        return MISSING
    for scale, unit in ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if byte_count >= scale:
            return f"{significant(byte_count / scale, 3)} {unit}"
    return f"{byte_count:.0f} B"


def spread(values: Iterable[int]) -> str:
    """Counts as "5", or "3 to 5" where they differ."""
    known = sorted(set(values)) or [0]
    return str(known[0]) if len(known) == 1 else f"{known[0]} to {known[-1]}"


def chance(chance: float) -> str:
    """Such as "probability 99.9%". Rounded down, so that nothing is more certain than it is."""
    return f"probability {math.floor(1000 * min(chance, 0.9999)) / 10:g}%"


def arrow(before: float | None, after: float | None, unit: str = "") -> str:
    """Base → head, or head alone where they are the same or the base's is not known."""
    if after is None:
        return MISSING
    return f"{after:,g}{unit}" if before is None or before == after else f"{before:,g} → {after:,g}{unit}"


def counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def label(axes: Axes, switches: Collection[str] = ()) -> str | None:
    """ "M=4096 N=1024 fp16 bias": the axes as people write them; None where they are not plainly words and numbers.
    `switches`: axes that are on or off although they are written as 1 and 0, as old records have them."""
    words = [_axis(axis, bool(value) if axis in switches else value) for axis, value in axes.items()]
    return None if None in words else " ".join(filter(None, words)) or None


def flags(every: Iterable[Axes]) -> frozenset[str]:
    """The axes whose values are only true and false, or 0 and 1."""
    known = tuple(every)
    others = {axis for axes in known for axis, value in axes.items() if value not in (True, False)}
    # True == 1 and False == 0, so this is about all four.
    return frozenset(axis for axes in known for axis in axes if axis not in others)


def switched(every: Iterable[Axes]) -> frozenset[str]:
    """The flags that are off somewhere: an axis that is 1 everywhere may as well be a number, such as a batch of 1."""
    known = tuple(every)
    return frozenset(axis for axis in flags(known) if any(axes.get(axis) == 0 for axes in known))


class Names(dict[CaseKey, Piece]):
    """By case; of an unknown case its id."""

    def __missing__(self, key: CaseKey) -> Piece:
        return Code(key.id)


def names(cases: Iterable[Case], cards: Iterable[Card] = ()) -> Names:
    """Each case's label, axes, or id where neither says which of its card it is; behind its card's, of several."""
    known, listed = tuple(cases), tuple(cards)
    switches = switched(case.axes for case in known)
    labels = {case.key: visible(case.label or "", MAX_LABEL) or label(case.axes, switches) for case in known}
    uses = Counter((key.card, text) for key, text in labels.items())
    titles = titles_of((case.card for case in known), listed)
    found = Names()
    for key, text in labels.items():
        title = titles.get(key.card)
        found[key] = Code(f"{title}/{key.id}" if title else key.id)
        if text is not None and uses[key.card, text] == 1:
            found[key] = f"{title}, {text}" if title else text
    return found


def factored(cases: Iterable[Case], named: Mapping[CaseKey, Piece]) -> tuple[str, dict[CaseKey, Piece]]:
    """What the names of all these cases have in common, "S=512 B=32 H=8", and the names without it: axes alone, and
    each case keeps at least one word."""
    known = tuple(cases)
    words = {case.key: str(named[case.key]).split(" ") for case in known if isinstance(named[case.key], str)}
    if len(known) < 2 or len(words) < len(known):
        return "", dict(named)
    axes = [{_axis(axis, value) for axis, value in case.axes.items()} & set(words[case.key]) for case in known]
    shared = set.intersection(*axes)
    common = [word for word in words[known[0].key] if word in shared]
    while common and any(set(own) <= set(common) for own in words.values()):
        common.pop()
    # The title of a card stands before its case, with a comma that nothing may be left to follow.
    short: dict[CaseKey, Piece] = {
        key: " ".join(word for word in own if word not in common).rstrip(",") for key, own in words.items()
    }
    return " ".join(common), {**named, **short}


def ids(keys: Iterable[CaseKey], cards: Iterable[Card] = ()) -> dict[CaseKey, Code]:
    """Each case's id; behind its card's label where cases of two cards share the id."""
    known = tuple(dict.fromkeys(keys))
    sharing, titles = Counter(key.id for key in known), card_names(cards)
    named = {key: titles.get(key.card, key.card) if sharing[key.id] > 1 else "" for key in known}
    return {key: Code(f"{card}/{key.id}" if card else key.id) for key, card in named.items()}


def card_names(cards: Iterable[Card]) -> dict[str, str]:
    """Each card's label, or its name where it has none or shares it with another card."""
    labels = {card.name: visible(card.label or "", MAX_LABEL) for card in cards}
    uses = Counter(labels.values())
    return {name: text if text and uses[text] == 1 else visible(name, MAX_LABEL) for name, text in labels.items()}


def titles_of(named: Iterable[str], cards: Iterable[Card]) -> dict[str, str]:
    """What to call each card where there are several, named or listed; nothing where there is one, which needs none."""
    labels = card_names(cards)
    known = tuple(dict.fromkeys((*named, *labels)))
    return {card: labels.get(card, visible(card, MAX_LABEL)) for card in known} if len(known) > 1 else {}


def reference(cards: Iterable[Card]) -> str:
    """What the reference is called: by its name where all cards have the same."""
    called = {visible(card.reference or "", MAX_LABEL) or REFERENCE for card in cards} or {REFERENCE}
    return called.pop() if len(called) == 1 else "reference"


def device(device_: Device) -> tuple[Piece, ...]:
    """Such as " on the L4" or " on AMD EPYC"; empty where the device is unknown."""
    if device_.name is None:
        return ()
    nvidia = device_.name.removeprefix("NVIDIA ")
    if nvidia != device_.name and all(map(_GPU_WORDS.fullmatch, re.split(r"[ -]", nvidia))):
        return (" on the ", nvidia)
    family = _CPU_FAMILY.search(device_.name)
    if family and on_cpu(device_):
        return (f" on {family[1]} {family[2]}",)
    return (" on ", Code(device_.name))


def on_cpu(device_: Device) -> bool:
    """Whether the CPU kernel was measured: a named device that has nothing of a GPU."""
    known = (device_.compute_capability, device_.driver, device_.uuid)
    return device_.name is not None and not device_.name.startswith("NVIDIA") and known == (None, None, None)


def commit(sha: str | None, unknown: str) -> Piece:
    """A commit as people write it, or `unknown`."""
    return unknown if sha is None else Code(sha[:7] if is_commit(sha) else sha)


def is_commit(sha: str | None) -> bool:
    return sha is not None and _COMMIT.fullmatch(sha) is not None


def sentence(text: str) -> str:
    """A message as the middle of a sentence: no capital that only opens it, no full stop."""
    body = text.strip().rstrip(".")
    return body[:1].lower() + body[1:] if body[1:2].islower() else body


def _axis(axis: str, value: bool | float | str) -> str | None:
    """One axis in a label: nothing where it is false, None where it cannot be shown as words."""
    if not _AXIS.fullmatch(axis) or (isinstance(value, str) and not _WORD.fullmatch(value)):
        return None
    if isinstance(value, bool):
        return axis if value else ""
    if isinstance(value, str):
        return (dtypes.canonical(value) or value) if axis.casefold() == "dtype" else f"{axis}={value}"
    return f"{axis}={int(value)}" if value == int(value) and abs(value) < 1e15 else f"{axis}={value:g}"


def separated(lines: Iterable[Line], separator: str = ", ") -> Line:
    """One line of several."""
    return tuple(piece for number, line in enumerate(lines) for piece in ((separator, *line) if number else line))
