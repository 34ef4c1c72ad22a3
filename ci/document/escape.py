"""Makes untrusted text inert in GitHub's Markdown: it is shown, and does nothing else. GitHub turns @mentions,
#references, commit ids, bare addresses, :shortcodes: and $mathematics$ into links after the Markdown is parsed; only
code is left alone. So the rule is an allow-list: a word that is plainly a word or a number stays as it is, and
everything else becomes a code span. Inside HTML, escaping is jinja2's; `visible` serves both."""

from __future__ import annotations

import re
import shlex
import unicodedata
from functools import lru_cache
from itertools import groupby
from operator import itemgetter

MAX_CHARACTERS = 600
"""Of one piece of text: more than anybody reads, little enough that no piece fills the comment."""

# Blank without being spaces: Hangul fillers and the empty Braille pattern.
_BLANK = frozenset("\u115f\u1160\u3164\uffa0\u2800")
# Right-to-left letters reorder the words beside them, without any control character.
_RIGHT_TO_LEFT = frozenset({"R", "AL", "AN"})

_NUMBER = r"[+−-]?\d+(?:[.,]\d+)*"
_WORD = r"[A-Za-zµ°À-ÖØ-öø-ÿ]+"
_PLAIN = re.compile(
    rf"""
    [("'“\[]*                                 # opening marks; "[" is checked below
    (?:
        {_NUMBER}(?:e[+−-]?\d+|%|×|{_WORD})?  # 4.9%, 4×, 128MiB, 2.4e−07
      | (?:{_WORD}|\d+(?=[A-Za-zµ]))\d*(?:['/=−–](?:{_WORD}|\d+))*   # slower, TFLOP/s, S=512
      | (?:{_WORD}|\d+)(?:-{_WORD})+          # 64-bit, back-to-back
      | \d+(?:[-–]\d+)+                       # 2026-11-21
      | [±]\d+(?:\.\d+)?%?                    # ±1%
      | [–—·×→±=]
    )
    [.,:;!?)"'”\]]*                           # closing marks
  | [.,:;<]                                   # between two pieces of a line; "p < 0.01"
    """,
    re.VERBOSE | re.ASCII,
)
_HAZARD = re.compile(
    r"""
    (?i:[0-9a-f]{7})        # a commit id
  | \[(?![+−-]?\d)          # brackets only around numbers: no task box, footnote or alert
  | \][^.,;)]               # and never where a link's or a definition's address could follow
  | (?i:gh-\d)              # an issue
    """,
    re.VERBOSE,
)
_ADDRESS = re.compile(r"https?://[A-Za-z0-9._:-]{1,200}(?:/[A-Za-z0-9._~%-]{0,200}){0,20}(?:#[A-Za-z0-9_-]{1,100})?")
_BLOCK_START = re.compile(r"\d+[.)]|=")
"""As the first word of a line these would start a list or underline a heading."""


class Markdown(str):
    """Text that is already Markdown and must not be escaped again."""

    __slots__ = ()


def visible(text: str, most: int = MAX_CHARACTERS) -> str:
    """One line of at most `most` characters in which nothing is hidden and white space is single spaces."""
    line = " ".join(verbatim(unicodedata.normalize("NFC", text[: most + 1])).split())
    return line if len(line) <= most else line[: most - 1].rstrip() + "…"


def verbatim(text: str) -> str:
    """One line, spaces kept: a character that is invisible, reorders others or stacks on them becomes \\u{…}."""
    plain = text.isascii() and text.isprintable()  # as most are: each character stays
    # It opens an HTML comment: a comment's own hidden marker must be the only one in it, in its source too.
    return (text if plain else "".join(map(_shown, text))).replace("<!--", "<! --")


def _shown(character: str) -> str:
    if character.isascii() and character.isprintable():
        return character
    if character.isspace():
        return " "
    hidden = (
        unicodedata.category(character)[0] in "CMZ"
        or unicodedata.bidirectional(character) in _RIGHT_TO_LEFT
        or character in _BLANK
    )
    return f"\\u{{{ord(character):x}}}" if hidden else character


@lru_cache(maxsize=4096)
def code(text: str, most: int = MAX_CHARACTERS) -> Markdown:
    """A code span that its content cannot end, and in which GitHub looks for nothing."""
    shown = visible(text, most) or "(blank)"
    fence = "`" * (_longest_run(shown) + 1)
    padding = " " if shown.startswith("`") or shown.endswith("`") else ""
    return Markdown(f"{fence}{padding}{shown}{padding}{fence}")


@lru_cache(maxsize=4096)
def prose(text: str) -> Markdown:
    """A sentence: plain words stay plain, every other run of words becomes a code span. Spaces at either end stay."""
    marked = ((_is_plain(word, first=index == 0), word) for index, word in enumerate(visible(text).split(" ")))
    runs = []
    for plain, same in groupby(marked, key=itemgetter(0)):
        run = " ".join(word for _, word in same)
        body = run.rstrip(",;:")  # a mark that only ends its words stands behind the code
        if body.endswith(")") and body.count("(") < body.count(")"):  # as does a bracket that plain words opened
            body = body[:-1]
        opening = "(" if body.startswith("(") and body.count("(") > body.count(")") else ""
        words = body.removeprefix(opening)
        coded = f"{opening}{code(words)}{run[len(body) :]}" if words.strip() else code(run)
        runs.append(run if plain else coded)
    return Markdown(framed(text, " ".join(runs)))


def link(text: str, address: str) -> Markdown:
    """A link, where the address is plainly one; else the text alone."""
    return Markdown(f"[{prose(text)}]({address})") if is_address(address) else prose(text)


def is_address(text: str) -> bool:
    """Whether this is an address on the web in which nothing can end a link or an attribute."""
    return bool(_ADDRESS.fullmatch(text))


def framed(text: str, line: str) -> str:
    """`line` with the spaces that `text` has at its ends."""
    before = " " if text[:1] == " " else ""
    after = " " if text[-1:] == " " and line else ""
    return before + line + after


@lru_cache(maxsize=4096)
def _is_plain(word: str, first: bool) -> bool:
    if not word:
        return True
    return bool(_PLAIN.fullmatch(word)) and not _HAZARD.search(word) and not (first and _BLOCK_START.fullmatch(word))


def fence(lines: tuple[str, ...], language: str) -> Markdown:
    """A block of lines, each without line breaks of its own, that none of them can close."""
    body = "\n".join(lines)
    marks = "`" * max(3, _longest_run(body) + 1)
    return Markdown(f"{marks}{language}\n{body}\n{marks}")


def shell(*words: str) -> str:
    """One command line, each word quoted, on one line whatever the words hold."""
    return " ".join(
        shlex.quote(word) if verbatim(word) == word else f"$'{''.join(map(_shell_character, word))}'" for word in words
    )


def _shell_character(character: str) -> str:
    if character in "\\'":
        return "\\" + character
    if _shown(character) == character and character != "<":
        return character
    return f"\\U{ord(character):08x}"


def _longest_run(text: str) -> int:
    return max((len(run) for run in re.findall(r"`+", text)), default=0)
