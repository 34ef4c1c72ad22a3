"""The drawings of docs/visual-guide.md: the loop, a session with the policy's times, and how patterns come about."""

from __future__ import annotations

from collections.abc import Mapping

from markupsafe import Markup

from kernelgate.ci.judge.policy import Policy
from kernelgate.ci.page import drawing
from kernelgate.ci.page.drawing import MIDDLE
from kernelgate.ci.sessions import gates
from tests.pages.sketch import arrow, box, height_of, picture

WIDE = 700.0


def pictures(rules: Policy) -> Mapping[str, str]:
    return {"guide_loop": _loop(), "guide_session": _session(rules), "guide_patterns": _patterns()}


def _loop() -> str:
    said = "The loop: believe, change one thing, try, decide, learn, and from there again; from learn also to close"
    return picture(
        said, WIDE, 250,
        box((20, 20), 150, ["believe", "what holds it back,", "what a change gains"]),
        arrow((170, 51), (205, 51)),
        box((205, 20), 150, ["change one thing", "in the sources", ""]),
        arrow((355, 51), (390, 51)),
        box((390, 20), 290, ["try", "compile, fuzz, time beside the state before",
             "in the same processes, profile both"], "now"),
        arrow((535, 83), (535, 150)),
        drawing.text(545, 120, "kernelgate session try", "small"),
        box((530, 150), 150, ["revert", "anything else; the", "patch is kept"], "bad"),
        box((360, 150), 150, ["keep", "certain, and by", "enough"], "good"),
        arrow((535, 110), (435, 110), (435, 150)),
        arrow((360, 181), (300, 181)), arrow((605, 213), (605, 233), (260, 233), (260, 213)),
        box((150, 150), 150, ["learn", "the log has the gain,", "its interval, its cause"]),
        arrow((190, 150), (190, 120), (95, 120), (95, 83)),
        drawing.text(110, 114, "again", "small"),
        arrow((150, 181), (110, 181)),
        box((20, 158), 90, ["close", "the report"]),
    )  # fmt: skip


def _session(rules: Policy) -> str:
    listed = [gate for gate in gates.of("optimise", rules) if gate.name != "document"]
    total = gates.minutes("optimise", rules)
    drawn, x = Markup(""), 12.0
    for at, gate in enumerate(listed):
        lines = [gate.name, f"at most {gate.minutes:g} min"]
        drawn += box((x, 40), 118, lines, "now" if gate.name == "profile" else "box")
        drawn += arrow((x + 118, 63), (x + 139, 63)) if at + 1 < len(listed) else Markup("")
        x += 139
    below = f"only below {rules.guidance.profile_below:g}× the reference"
    changes = [
        "changes, one after the other",
        f"{rules.session.change_minutes:g} min; each is tried, then kept or reverted",
    ]
    again = ["measure again", f"{rules.session.again_minutes:g} min, against the reference"]
    close = ["close", f"{rules.session.document_minutes:g} min, the report"]
    failed = ["a gate fails", "do what it says, pass it again"]
    gone = ["stop", f"{total:g} min, the money, or {rules.session.without_gate_minutes:g} min without a gate"]
    said = f"A session: {', '.join(gate.name for gate in listed)}; then changes, measuring again, and the report"
    return picture(
        said, WIDE + 20, 262,
        drawing.text(12, 24, "gates, in this order", "small"), drawn,
        drawing.text(627, 104, below, "small", MIDDLE),
        arrow((627, 110), (627, 132)),
        box((400, 132), 308, changes, "good"),
        arrow((400, 155), (380, 155)), box((180, 132), 200, again),
        arrow((180, 155), (160, 155)), box((12, 132), 148, close),
        box((12, 202), 230, failed, "bad"), box((300, 202), 408, gone, "bad"),
    )  # fmt: skip


def _patterns() -> str:
    said = (
        "A pattern: seen in sessions' logs, proposed, reviewed by a person, kept as a file, applied in the next session"
    )
    steps = [
        ("now", ["a session's log", "what cost time,", "mistakes, notes"]),
        ("box", ["close proposes", "where the same", "thing cost time twice"]),
        ("box", ["a person reviews", "/kernelgate pattern", "NAME: what to do"]),
        ("good", ["docs/patterns", "a file with signals,", "by pull request"]),
    ]
    drawn = Markup("")
    for at, (kind, lines) in enumerate(steps):
        x = 12 + at * 172.0
        drawn += box((x, 20), 150, lines, kind)
        drawn += arrow((x + 150, 51), (x + 172, 51)) if at + 1 < len(steps) else Markup("")
    used = [
        "the next session",
        "kernelgate patterns: those whose signals are seen now; kernelgate prompt: the same for an agent",
    ]
    bottom = 20 + height_of(steps[0][1])
    return picture(
        said, WIDE, 180,
        drawn,
        arrow((603, bottom), (603, 122)), box((87, 122), 591, used), arrow((87, 145), (60, 145), (60, bottom)),
    )  # fmt: skip
