"""Changes one input a little: JSON by its values, keys and lengths, anything else by its bytes."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from copy import deepcopy
from typing import Any

NUMBERS = (0, -1, 1 << 63, -(1 << 63), 10**19, 5e-324, -1e300, 1.7976931348623157e308)
TEXTS = ("", "²³.9", "x" * 300, "a\nb::error::c", "<!-- -->@octo|`", "\ud800", "\u202e\u0000", "0" * 40, "NaN")
STRANGE: tuple[Any, ...] = (None, True, *NUMBERS, *TEXTS, [], {}, [[]], {"": {}})
"""Values at the edge of what readers think of."""
WORDS = (b"\0", b"\xff", b"\n", b"#", b"=", b"%", b"`", b"- ", b"PK\x01\x02", b"[[", b'"""', b"9" * 40, b" " * 400)

ByBytes = Callable[[bytes], bytes]


def mutated(data: bytes, rng: random.Random, by_bytes: ByBytes | None = None) -> bytes:
    """`data` with one to four changes; `by_bytes` makes those of what is not JSON, and some of what is."""
    tree = _parsed(data) if rng.random() < 0.75 else None
    if not isinstance(tree, dict | list):
        return by_bytes(data) if by_bytes else _other_bytes(data, rng)
    for _ in range(rng.randint(1, 4)):
        _change(tree, rng)
    return json.dumps(tree, separators=(",", ":")).encode()


def _parsed(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def _change(tree: Any, rng: random.Random) -> None:
    """One value somewhere below is replaced, removed, doubled, or moved to another key."""
    inner = _somewhere(tree, rng)
    if not inner:
        return
    at = rng.choice(list(inner) if isinstance(inner, dict) else range(len(inner)))
    match rng.randrange(4):
        case 0:
            del inner[at]
        case 1 if isinstance(inner, dict):
            inner[rng.choice((at + "x", "", "schema", at.upper()))] = deepcopy(inner[at])
        case 1:
            inner[at:at] = [deepcopy(inner[at]) for _ in range(rng.choice((1, 2, 40)))]
        case _:
            inner[at] = _instead(inner[at], rng)


def _somewhere(tree: Any, rng: random.Random) -> Any:
    """A dict or list of the tree; its upper parts are likelier than its leaves."""
    while True:
        below = [each for each in (tree.values() if isinstance(tree, dict) else tree) if isinstance(each, dict | list)]
        if not below or rng.random() < 0.3:
            return tree
        tree = rng.choice(below)


def _instead(value: Any, rng: random.Random) -> Any:
    if isinstance(value, int | float) and rng.random() < 0.5:
        return rng.choice((-value, value * 10, value / 1e9, value + 1))
    if isinstance(value, str) and value and rng.random() < 0.3:
        return value[: rng.randrange(len(value))] + value * rng.choice((0, 1, 9))
    return deepcopy(rng.choice(STRANGE))


def _other_bytes(data: bytes, rng: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        start = rng.randrange(len(changed) + 1)
        end = min(len(changed), start + rng.randint(1, 8))
        match rng.randrange(4):
            case 0:
                del changed[start:end]
            case 1:
                changed[start:start] = rng.choice(WORDS)
            case 2:
                changed[start:start] = changed[start:end] * rng.choice((1, 100))
            case _:
                changed[start:end] = rng.randbytes(end - start)
    return bytes(changed)
